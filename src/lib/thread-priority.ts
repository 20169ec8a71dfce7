import { readdir, readFile } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";

/** Nice value added to lower-priority threads. With 10 and two busy programs on one core, short jobs exceeded a sender's 4 s timeout. */
const NICE_INCREMENT = 5;
const MAX_NICE = 19;

/**
 * Lowers the priority of the calling worker thread below the other threads of this process, so that its work never delays the main
 * thread. Only Linux has a priority per thread (setpriority(2), "C library/kernel differences"). Elsewhere the call would change the whole
 * process, so it has no effect there.
 */
export function goBehindOtherThreads(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(MAX_NICE, getPriority(0) + NICE_INCREMENT));
  } catch {
    // Ignore the error: only the scheduling order depends on it.
  }
}

/** Name of the threads in libuv's pool. */
const POOL_THREAD = "libuv-worker";

/** Lowers the priority of libuv's pool threads, which decompress bodies, read files and resolve names. */
export async function putPoolBehindOtherThreads(): Promise<void> {
  if (process.platform !== "linux") return;
  // `readdir` itself runs on a pool thread, so all pool threads exist when it completes.
  const ids = await readdir("/proc/self/task").catch(() => []);
  await Promise.all(ids.map((id) => lowerPriority(id).catch(() => {})));
}

/** Lowers the priority of one thread if it belongs to the pool. Rejects if the thread has ended. */
async function lowerPriority(id: string): Promise<void> {
  const name = await readFile(`/proc/self/task/${id}/comm`, "utf8");
  if (name.trimEnd() === POOL_THREAD)
    setPriority(Number(id), Math.min(MAX_NICE, getPriority(0) + NICE_INCREMENT));
}
