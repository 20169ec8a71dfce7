import { accessSync, constants, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../result.ts";
import { acquireFileLock } from "./file-lock.ts";

/** Exclusive lock on a data directory. The lock ends at disposal, or when the process ends for any reason. */
export interface DataLock extends Disposable {
  /** Absolute path without symbolic links. */
  readonly dataDir: string;
}

export interface DataLockHeld {
  /** Error message for the operator. Names the directory and, if known, the process that uses it. */
  readonly message: string;
  readonly holderPid: number | undefined;
}

const CONTENTION_MS = 1_000;

/**
 * Creates the data directory (mode 0700) if needed, and locks it. This process's id goes to a separate file, because opening the
 * lock file to read it would release the lock.
 *
 * @throws a system error if the directory cannot be created or written
 */
export function acquireDataLock(
  dataDir: string,
  contentionMs: number = CONTENTION_MS,
): Result<DataLock, DataLockHeld> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const real = realpathSync(dataDir);
  // Check the permissions first, because SQLite's own error would not mention them.
  accessSync(real, constants.R_OK | constants.W_OK | constants.X_OK);
  const holderFile = join(real, "inlet.pid");
  const lock = acquireFileLock(join(real, "inlet.lock"), contentionMs);
  if (lock === undefined) {
    const holderPid = readHolder(holderFile);
    const holder = holderPid === undefined ? "another process" : `process ${holderPid}`;
    return err({
      message: `${real} is in use by ${holder}; stop it, or use another data directory`,
      holderPid,
    });
  }
  writeFileSync(holderFile, `${process.pid}\n`, { mode: 0o600 });
  return ok({ dataDir: real, [Symbol.dispose]: () => lock[Symbol.dispose]() });
}

/**
 * Reads the id of the process that owns the lock. Ignores the id of a dead process, because a new owner stores its own id only
 * shortly after locking.
 */
function readHolder(file: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(file, "utf8"), 10);
    return pid > 0 && process.kill(pid, 0) ? pid : undefined;
  } catch {
    return undefined;
  }
}
