/**
 * How long a test waits for what must come, in milliseconds. It ends a test that hangs and measures nothing: a machine that is
 * slow, or busy with other things, stays far below it.
 */
export const CEILING_MS = 120_000;

/** The real ones, whatever clock a test holds or moves. */
const { setTimeout } = globalThis;
const now = performance.now.bind(performance);

/** Between two looks: at first, and for a condition that takes long. A look may cost a call and its queries, and others compute. */
const FIRST_MS = 5;
const MOST_MS = 50;

/** Waits until the condition holds, asking again and again, less and less often; fails when it does not below the ceiling. */
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
