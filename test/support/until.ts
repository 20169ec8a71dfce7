/** Waits until the condition holds, asking again and again; fails when it does not within the time. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  options: { readonly timeoutMs?: number; readonly everyMs?: number } = {},
): Promise<void> {
  const { timeoutMs = 5_000, everyMs = 5 } = options;
  const deadline = Date.now() + timeoutMs;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${timeoutMs} ms: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
