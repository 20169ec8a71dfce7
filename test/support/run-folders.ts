import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, realpath, statfs } from "node:fs/promises";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** The folders of one run. They go with it, and with them all that works there: after a Ctrl-C and a kill as well. */
export interface RunFolders {
  /** For temporary files. */
  readonly temporary: string;
  /** In memory where there is room, else the same. */
  readonly fast: string;
}

const MEMORY = "/dev/shm";
const NEEDED_BYTES = 2 * 1024 ** 3;
const WATCHER = join(import.meta.dirname, "run-watcher.ts");

export async function openRunFolders(): Promise<RunFolders> {
  const temporary = await makeFolder(tmpdir());
  const { bavail, bsize } = await statfs(MEMORY).catch(() => ({ bavail: 0, bsize: 0 }));
  const fast = bavail * bsize > NEEDED_BYTES ? await makeFolder(MEMORY) : temporary;
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

/** Servers of another user go through it. */
async function makeFolder(parent: string): Promise<string> {
  const folder = await realpath(await mkdtemp(join(parent, "inlet-test-")));
  await chmod(folder, 0o711);
  return folder;
}
