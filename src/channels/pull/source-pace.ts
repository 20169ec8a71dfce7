import { createRateBuckets } from "../../lib/rate-buckets.ts";
import { type Sleep, sleep as sleepByClock } from "../../lib/sleep.ts";
import { unlessAborted } from "../../lib/wait.ts";

/** Resolves when a delivery of the organization's sources may go on; undefined: at once. Rejects where the signal aborts first. */
export type SourcePace = (
  organizationId: string,
  options: { readonly signal: AbortSignal },
) => Promise<void> | undefined;

export interface SourcePaceDeps {
  /** Of an organization; undefined: as fast as they come. */
  readonly deliveriesPerSecondOf: (organizationId: string) => number | undefined;
  /** Milliseconds, monotonic. */
  readonly nowMs?: () => number;
  readonly sleep?: Sleep;
}

/** Several turns at a time: a timer for each would be most of the work. */
const LEAST_SLEEP_MS = 10;

/**
 * How fast the deliveries of each organization's sources go on to the bus: by the token buckets that hooks have, but what comes too
 * fast waits for its turn, and with it the server that sends it. Those of one organization wait in line, and keep no other waiting.
 */
export function createSourcePace(deps: SourcePaceDeps): SourcePace {
  const { deliveriesPerSecondOf, nowMs = () => performance.now(), sleep = sleepByClock } = deps;
  const buckets = createRateBuckets<string>();
  const take = (organizationId: string): number => {
    const rate = deliveriesPerSecondOf(organizationId);
    return rate === undefined ? 0 : buckets.take(organizationId, rate, nowMs());
  };
  /** The last in line of each organization that waits; never rejects. */
  const lines = new Map<string, Promise<void>>();

  async function waitForTurn(
    organizationId: string,
    before: Promise<void> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (before !== undefined) await unlessAborted(signal, before);
    for (;;) {
      signal.throwIfAborted();
      const waitMs = take(organizationId);
      if (waitMs === 0) return;
      await sleep(Math.max(waitMs, LEAST_SLEEP_MS), signal);
    }
  }

  return (organizationId, { signal }) => {
    const before = lines.get(organizationId);
    if (before === undefined && take(organizationId) === 0) return undefined;
    const turn = waitForTurn(organizationId, before, signal);
    // One that gives up keeps the others in their order.
    const last = Promise.allSettled([before, turn]).then(leave);
    function leave(): void {
      if (lines.get(organizationId) === last) lines.delete(organizationId);
    }
    lines.set(organizationId, last);
    return turn;
  };
}
