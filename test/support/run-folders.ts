import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, chmod, constants, mkdtemp, realpath, rm, statfs, writeFile } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * The folders of one run, in memory where there is room: on a disk the files of PostgreSQL alone take seconds of work. They go with
 * the run, and with them all that works there: after a Ctrl-C and a kill as well.
 */
export interface RunFolders {
  /** For temporary files. */
  readonly temporary: string;
  /** Of the run's PostgreSQL. */
  readonly fast: string;
}

const MEMORY = "/dev/shm";
const POSTGRES_BYTES = 2 * 1024 ** 3;
/** `npm test` holds a third of a gigabyte there at most, the longer runs more. */
const ALL_BYTES = 4 * 1024 ** 3;
const WATCHER = join(import.meta.dirname, "run-watcher.ts");

export async function openRunFolders(): Promise<RunFolders> {
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  // What stands there is memory that something may need.
  const room = Math.min(bavail * bsize, process.availableMemory());
  const inMemory = room > POSTGRES_BYTES ? await makeFolder(MEMORY) : undefined;
  const holdsAll = inMemory !== undefined && room > ALL_BYTES && (await runsPrograms(inMemory));
  const temporary = holdsAll ? inMemory : await makeFolder(tmpdir());
  const fast = inMemory ?? temporary;
  // In a session of its own: a Ctrl-C is for the run. Its input ends with this process, whatever ends that.
  const watcher = spawn(process.execPath, [WATCHER, ...new Set([temporary, fast])], {
    detached: true,
    stdio: ["pipe", "ignore", "inherit"],
  });
  await once(watcher, "spawn");
  watcher.unref();
  (watcher.stdin as Socket).unref();
  return { temporary, fast };
}

/** False where it is mounted so that it does not (mount(8), noexec): tests start copies of programs. */
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

/** Servers of another user go through it. */
async function makeFolder(parent: string): Promise<string> {
  const folder = await realpath(await mkdtemp(join(parent, "inlet-test-")));
  await chmod(folder, 0o711);
  return folder;
}
