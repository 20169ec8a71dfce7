import { readdir, readFile } from "node:fs/promises";
import { getPriority, setPriority } from "node:os";

/** With 10, beside two busy programs on one core, what takes milliseconds took more than the four seconds that a sender is let wait. */
const BEHIND_OTHERS = 5;
const LAST = 19;

/**
 * Lets the other threads of this process go first wherever a processor is wanted by several: the work of a worker thread waits then, and
 * what everyone waits for does not. Linux alone has a priority of each thread (setpriority(2), "C library/kernel differences"); elsewhere
 * it would be that of the whole process, so nothing changes there.
 */
export function goBehindOtherThreads(): void {
  if (process.platform !== "linux") return;
  try {
    setPriority(0, Math.min(LAST, getPriority(0) + BEHIND_OTHERS));
  } catch {
    // Nothing but the order of threads hangs on it.
  }
}

/** What libuv names the threads of its pool. */
const POOL_THREAD = "libuv-worker";

/** As `goBehindOtherThreads`, of the threads that unpack bodies, read files and look up names. */
export async function putPoolBehindOtherThreads(): Promise<void> {
  if (process.platform !== "linux") return;
  // By a thread of the pool itself: all of them are there then.
  const ids = await readdir("/proc/self/task").catch(() => []);
  await Promise.all(ids.map((id) => putBehind(id).catch(() => {})));
}

/** Rejects where the thread has ended meanwhile. */
async function putBehind(id: string): Promise<void> {
  const name = await readFile(`/proc/self/task/${id}/comm`, "utf8");
  if (name.trimEnd() === POOL_THREAD) setPriority(Number(id), Math.min(LAST, getPriority(0) + BEHIND_OTHERS));
}
