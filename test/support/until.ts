/**
 * Maximum time in milliseconds that a test waits for an expected result. It only ends tests that hang:
 * a slow or busy machine stays far below it.
 */
export const CEILING_MS = 120_000;

/** The real functions, because a test may later fake or move a clock. */
const { setTimeout } = globalThis;
const now = performance.now.bind(performance);

/**
 * Interval between two checks: the first one and the maximum. A check may cost an API call with queries, and other tests need the CPU.
 */
const FIRST_MS = 5;
const MOST_MS = 50;

/** Waits until the condition holds, checking at growing intervals. Throws at the ceiling. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  options: { readonly everyMs?: number; readonly ceilingMs?: number } = {},
): Promise<void> {
  const { everyMs, ceilingMs = CEILING_MS } = options;
  let waitMs = everyMs ?? FIRST_MS;
  const deadline = now() + ceilingMs;
  while (!(await condition())) {
    if (now() > deadline) throw new Error(`not within ${ceilingMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (everyMs === undefined) waitMs = Math.min(waitMs * 1.2, MOST_MS);
  }
}
