import { type Found, ok, warning } from "./check-result.ts";

/** Difference of two clocks from which on the alert rule `InletClockDiffers` fires, in ms. */
const MAX_DIFFERENCE_MS = 5_000;
/** Suggested action of that rule. */
const ACTION = "Synchronize it with NTP. Event times and signature checks depend on it.";

/** Compares a server's clock with the clock of this machine, by the times at which this machine sent the request and got the reply. */
export function checkClock(
  check: string,
  times: { readonly serverMs: number; readonly sentMs: number; readonly receivedMs: number },
): Found {
  const { serverMs, sentMs, receivedMs } = times;
  // The server read its clock at some time between both, so only a difference outside of them is certain.
  const differenceMs = serverMs < sentMs ? sentMs - serverMs : Math.max(0, serverMs - receivedMs);
  const text = `differs from the clock of this machine by ${(differenceMs / 1000).toFixed(1)} seconds`;
  const name = `${check}: clock`;
  return differenceMs > MAX_DIFFERENCE_MS ? warning(name, text, ACTION) : ok(name, text);
}
