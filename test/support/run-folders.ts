import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, constants, mkdtemp, realpath, rm, statfs, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * The folders of one run, in memory when there is space, because on disk PostgreSQL's files alone cost seconds.
 * A watcher removes them after the run and ends processes that still use them, even after Ctrl-C or a kill.
 */
export interface RunFolders {
  /** Folder for temporary files. */
  readonly temporary: string;
  /** Folder for the run's PostgreSQL, in memory if there is space. */
  readonly fast: string;
}

const MEMORY = "/dev/shm";
const POSTGRES_BYTES = 2 * 1024 ** 3;
/** `npm test` uses at most a third of a gigabyte of memory in the folder. Longer runs use more. */
const ALL_BYTES = 4 * 1024 ** 3;
const WATCHER = join(import.meta.dirname, "run-watcher.ts");

export async function openRunFolders(): Promise<RunFolders> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  // Files in this folder take up memory, so the memory available to processes is a limit too.
  const room = Math.min(bavail * bsize, process.availableMemory());
  const inMemory = room > POSTGRES_BYTES ? await makeFolder(MEMORY) : undefined;
  const holdsAll = inMemory !== undefined && room > ALL_BYTES && (await runsPrograms(inMemory));
  const temporary = holdsAll ? inMemory : await makeFolder(tmpdir());
  const fast = inMemory ?? temporary;
  // The watcher has its own session, because Ctrl-C must only stop the run. Its standard input closes when this process ends for any
  // reason.
  const watcher = spawn(process.execPath, [WATCHER, ...new Set([temporary, fast])], {
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
  });
  await once(watcher, "spawn");
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return { temporary, fast };
}

/** Returns whether programs can run from the folder. Tests start copies of programs, which a `noexec` mount (mount(8)) forbids. */
async function runsPrograms(folder: string): Promise<boolean> {
  const program = join(folder, "program");
  await writeFile(program, "", { mode: 0o700 });
  const runs = await access(program, constants.X_OK).then(
    () => true,
    () => false,
  );
  await rm(program);
  return runs;
}

/** Servers of other users need to traverse the folder, but not to list it. */
async function makeFolder(parent: string): Promise<string> {
  const folder = await realpath(await mkdtemp(join(parent, "inlet-test-")));
  await chmod(folder, 0o711);
  return folder;
}
