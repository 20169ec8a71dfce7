import { type Sleep, sleep as sleepByClock } from "../../lib/sleep.ts";
import { unlessAborted } from "../../lib/wait.ts";
import { ownRates, type Rates } from "../../limits/shared-rates.ts";

export interface SourcePace {
  /**
   * Waits until the organization's rate limit allows `count` deliveries (default: 1) with `items` items (default: 1 per delivery). Returns
   * `undefined` if no wait is needed. Rejects if the signal aborts first.
   */
  readonly wait: (organizationId: string, options: PaceOptions) => Promise<void> | undefined;
  /**
   * Counts additional items after a delivery was published. The balance may become negative; later deliveries wait until it has recovered.
   */
  readonly overdraw: (organizationId: string, items: number) => void;
  /** Returns the maximum number of deliveries in a batch, which is the number that the rate limit allows in a quarter of a second. */
  readonly maxBatchSize: (organizationId: string) => number;
}

export interface PaceOptions {
  readonly signal: AbortSignal;
  readonly count?: number;
  readonly items?: number | undefined;
}

export interface SourcePaceDeps {
  /** Returns the organization's rate limit in items per second, or `undefined` if it is unlimited. */
  readonly deliveriesPerSecondOf: (organizationId: string) => number | undefined;
  /** Rates that all processes of this machine share. */
  readonly rates?: Rates | undefined;
  /** Monotonic clock in milliseconds. */
  readonly nowMs?: () => number;
  readonly sleep?: Sleep;
}

/** Limits a batch to the deliveries that the rate allows in this time. A longer batch would delay its first delivery. */
const MAX_BATCH_SECONDS = 0.25;
/** Minimum sleep in ms. Shorter sleeps would need a timer per delivery, which costs more CPU time than the delivery. */
const MIN_SLEEP_MS = 10;

/**
 * Limits the rate at which each organization's sources publish. Deliveries over the limit wait in order, which slows the server down
 * through backpressure.
 */
export function createSourcePace(deps: SourcePaceDeps): SourcePace {
  const { deliveriesPerSecondOf, nowMs = () => performance.now(), sleep = sleepByClock } = deps;
  const { rates = ownRates } = deps;
  const buckets = rates.buckets<string>("source.organization");
  const take = (organizationId: string): number =>
    buckets.take(organizationId, deliveriesPerSecondOf(organizationId), nowMs());
  function overdraw(organizationId: string, items: number): void {
    if (items > 0) buckets.overdraw(organizationId, items, deliveriesPerSecondOf(organizationId), nowMs());
  }

  /** For each organization, a promise that resolves after its last waiting delivery. These promises never reject. */
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
    // Also waits for the previous delivery, because later deliveries must not overtake it if this delivery is aborted.
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
