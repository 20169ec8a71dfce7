import { readdir, readFile } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";

/**
 * Nice value that is added for lower-priority threads. A value of 10 was too high: with two busy programs on one core, short
 * jobs exceeded a sender's timeout of 4 s.
 */
const NICE_INCREMENT = 5;
const MAX_NICE = 19;

/**
 * Lowers the priority of the calling worker thread below that of the process's other threads, so that it never delays the main
 * thread.
 *
 * Does nothing except on Linux. Only Linux has a priority per thread (setpriority(2), "C library/kernel differences"). On other
 * systems, the call would change the priority of the whole process.
 */
export function goBehindOtherThreads(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(MAX_NICE, getPriority(0) + NICE_INCREMENT));
  } catch {
    // Ignore the error, because only the scheduling order depends on the priority.
  }
}

/** Name of the threads in libuv's thread pool. */
const POOL_THREAD = "libuv-worker";

/** Lowers the priority of libuv's pool threads, which decompress bodies, read files and resolve host names. */
export async function putPoolBehindOtherThreads(): Promise<void> {
  if (process.platform !== "linux") return;
  // `readdir` itself runs on a pool thread. All pool threads therefore exist when it completes.
  const ids = await readdir("/proc/self/task").catch(() => []);
  await Promise.all(ids.map((id) => lowerPriority(id).catch(() => {})));
}

/** Lowers the priority of one thread if it belongs to the pool. Rejects if the thread has ended. */
async function lowerPriority(id: string): Promise<void> {
  const name = await readFile(`/proc/self/task/${id}/comm`, "utf8");
  if (name.trimEnd() === POOL_THREAD)
    setPriority(Number(id), Math.min(MAX_NICE, getPriority(0) + NICE_INCREMENT));
}
