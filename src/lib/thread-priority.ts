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
