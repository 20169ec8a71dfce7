import { createRateBuckets } from "../../lib/rate-buckets.ts";
import { type Sleep, sleep as sleepByClock } from "../../lib/sleep.ts";
import { unlessAborted } from "../../lib/wait.ts";

export interface SourcePace {
  /**
   * Resolves when `count` deliveries of the organization may be published (default 1). Charges `items` to the rate (default: one per
   * delivery). Returns `undefined` if they may be published at once. Rejects if the signal aborts first.
   */
  readonly wait: (organizationId: string, options: PaceOptions) => Promise<void> | undefined;
  /** Charges extra items after a delivery was let through. The rate goes into debt, and later deliveries wait until it is paid off. */
  readonly overdraw: (organizationId: string, items: number) => void;
  /** Maximum number of deliveries to publish as one batch: as many as the rate allows in a quarter of a second. */
  readonly maxBatchSize: (organizationId: string) => number;
}

export interface PaceOptions {
  readonly signal: AbortSignal;
  readonly count?: number;
  readonly items?: number | undefined;
}

export interface SourcePaceDeps {
  /** The organization's rate in items per second. `undefined` when it is unlimited. */
  readonly deliveriesPerSecondOf: (organizationId: string) => number | undefined;
  /** Monotonic clock in milliseconds. */
  readonly nowMs?: () => number;
  readonly sleep?: Sleep;
}

/** Caps how long the first delivery of a batch waits for the last one. */
const MAX_BATCH_SECONDS = 0.25;
/** Shortest sleep. One timer per delivery would cost more CPU than the deliveries. */
const MIN_SLEEP_MS = 10;

/**
 * Limits how fast each organization's sources publish, with token buckets as for hooks. Deliveries over the rate wait in order instead of
 * being rejected, which slows the server down by backpressure. Organizations do not delay each other.
 */
export function createSourcePace(deps: SourcePaceDeps): SourcePace {
  const { deliveriesPerSecondOf, nowMs = () => performance.now(), sleep = sleepByClock } = deps;
  const buckets = createRateBuckets<string>();
  const take = (organizationId: string): number => {
    const rate = deliveriesPerSecondOf(organizationId);
    return rate === undefined ? 0 : buckets.take(organizationId, rate, nowMs());
  };
  function overdraw(organizationId: string, items: number): void {
    const rate = deliveriesPerSecondOf(organizationId);
    if (rate !== undefined && items > 0) buckets.overdraw(organizationId, items, rate, nowMs());
  }

  /** The last waiter of each organization. These promises never reject. */
  const lines = new Map<string, Promise<void>>();

  async function waitForTurns(
    organizationId: string,
    count: number,
    extraItems: number,
    before: Promise<void> | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    if (before !== undefined) await unlessAborted(signal, before);
    for (let left = count; left > 0; ) {
      signal.throwIfAborted();
      const waitMs = take(organizationId);
      if (waitMs === 0) left--;
      else await sleep(Math.max(waitMs, MIN_SLEEP_MS), signal);
    }
    overdraw(organizationId, extraItems);
  }

  function wait(
    organizationId: string,
    { signal, count = 1, items = count }: PaceOptions,
  ): Promise<void> | undefined {
    const before = lines.get(organizationId);
    let left = count;
    while (before === undefined && left > 0 && take(organizationId) === 0) left--;
    if (left === 0) {
      overdraw(organizationId, items - count);
      return undefined;
    }
    const turn = waitForTurns(organizationId, left, items - count, before, signal);
    // Waits for the previous waiter too, so that an aborted one does not let later deliveries overtake.
    const last = Promise.allSettled([before, turn]).then(leave);
    function leave(): void {
      if (lines.get(organizationId) === last) lines.delete(organizationId);
    }
    lines.set(organizationId, last);
    return turn;
  }

  return {
    wait,
    overdraw,
    maxBatchSize(organizationId) {
      const rate = deliveriesPerSecondOf(organizationId);
      return rate === undefined ? Number.POSITIVE_INFINITY : Math.max(1, rate * MAX_BATCH_SECONDS);
    },
  };
}
