import { readdir, readFile } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";

/**
 * Amount by which a thread's nice value is raised. With 10, two busy programs on the same core delayed short jobs beyond a sender's
 * 4 s timeout.
 */
const NICE_INCREMENT = 5;
const MAX_NICE = 19;

/**
 * Gives the calling worker thread a lower priority than the other threads of the process, so that it never delays the main thread.
 *
 * Has no effect except on Linux, where each thread has a priority (setpriority(2), "C library/kernel differences"). On other
 * systems, the call would change the priority of the whole process.
 */
export function goBehindOtherThreads(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(MAX_NICE, getPriority(0) + NICE_INCREMENT));
  } catch {
    // Ignore the error, because only scheduling depends on the priority.
  }
}

const POOL_THREAD = "libuv-worker";

/** Lowers the priority of libuv's thread pool, which decompresses bodies, reads files and resolves host names. */
export async function putPoolBehindOtherThreads(): Promise<void> {
  if (process.platform !== "linux") return;
  // `readdir` itself runs on the thread pool, so all pool threads exist once it has completed.
  const ids = await readdir("/proc/self/task").catch(() => []);
  await Promise.all(ids.map((id) => lowerPriority(id).catch(() => {})));
}

/** Lowers the priority of a thread if it belongs to libuv's pool. Rejects if the thread has ended. */
async function lowerPriority(id: string): Promise<void> {
  const name = await readFile(`/proc/self/task/${id}/comm`, "utf8");
  if (name.trimEnd() === POOL_THREAD)
    setPriority(Number(id), Math.min(MAX_NICE, getPriority(0) + NICE_INCREMENT));
}
