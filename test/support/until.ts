/**
 * How long a test waits for what must come, in milliseconds. It ends a test that hangs and measures nothing: a machine that is
 * slow, or busy with other things, stays far below it.
 */
export const CEILING_MS = 120_000;

/** The real ones, whatever clock a test holds or moves. */
const { setTimeout } = globalThis;
const now = performance.now.bind(performance);

/** Waits until the condition holds, asking again and again; fails when it does not below the ceiling. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  options: { readonly everyMs?: number; readonly ceilingMs?: number } = {},
): Promise<void> {
  const { everyMs = 5, ceilingMs = CEILING_MS } = options;
  const deadline = now() + ceilingMs;
  while (!(await condition())) {
    if (now() > deadline) throw new Error(`not within ${ceilingMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
