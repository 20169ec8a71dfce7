import { accessSync, constants, mkdirSync, readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { err, ok, type Result } from "../result.ts";
import { acquireFileLock } from "./file-lock.ts";

/** Ownership of a data directory; held until disposed or until the process ends, however it ends. */
export interface DataLock extends Disposable {
  /** Real, absolute path. */
  readonly dataDir: string;
}

export interface DataLockHeld {
  /** For the operator: names the directory and, where it is known, the process that holds it. */
  readonly message: string;
  readonly holderPid: number | undefined;
}

const CONTENTION_MS = 1_000;

/**
 * Makes the directory (0700) if it is missing and takes it; `dataDir` of the lock is its real, absolute path. Throws
 * where the directory cannot be made or written. The holder's number is in a file of its own: to read the lock file would drop the lock.
 */
export function acquireDataLock(
  dataDir: string,
  contentionMs: number = CONTENTION_MS,
): Result<DataLock, DataLockHeld> {
  mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  const real = realpathSync(dataDir);
  // SQLite would say only that it cannot open its file.
  accessSync(real, constants.R_OK | constants.W_OK | constants.X_OK);
  const holderFile = join(real, "inlet.pid");
  const lock = acquireFileLock(join(real, "inlet.lock"), contentionMs);
  if (lock === undefined) {
    const holderPid = readHolder(holderFile);
    const holder = holderPid === undefined ? "another process" : `process ${holderPid}`;
    return err({ message: `${real} is in use by ${holder}; one data directory has one owner`, holderPid });
  }
  writeFileSync(holderFile, `${process.pid}\n`, { mode: 0o600 });
  return ok({ dataDir: real, [Symbol.dispose]: () => lock[Symbol.dispose]() });
}

/** Not the number of an earlier owner: the winner may have written its own only a moment later. */
function readHolder(file: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(file, "utf8"), 10);
    return pid > 0 && process.kill(pid, 0) ? pid : undefined;
  } catch {
    return undefined;
  }
}
