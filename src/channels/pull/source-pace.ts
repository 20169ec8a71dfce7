import { createRateBuckets } from "../../lib/rate-buckets.ts";
import { type Sleep, sleep as sleepByClock } from "../../lib/sleep.ts";
import { unlessAborted } from "../../lib/wait.ts";

export interface SourcePace {
  /**
   * Resolves when so many deliveries of the organization's sources may go on (default 1), and counts the items that they hold (default:
   * one each); undefined: at once. Rejects where the signal aborts first.
   */
  readonly wait: (organizationId: string, options: PaceOptions) => Promise<void> | undefined;
  /**
   * Counts so many items besides, of deliveries that have waited: they may bring more than there is room for, and the next ones wait
   * until that is made up for.
   */
  readonly overdraw: (organizationId: string, items: number) => void;
  /** How many are to wait for each other at most: those of a quarter of a second. */
  readonly maxBatchSize: (organizationId: string) => number;
}

export interface PaceOptions {
  readonly signal: AbortSignal;
  readonly count?: number;
  readonly items?: number | undefined;
}

export interface SourcePaceDeps {
  /** Of an organization, in items; undefined: as fast as they come. */
  readonly deliveriesPerSecondOf: (organizationId: string) => number | undefined;
  /** Milliseconds, monotonic. */
  readonly nowMs?: () => number;
  readonly sleep?: Sleep;
}

/** Of those that go on together the first is no later for the last. */
const MAX_BATCH_SECONDS = 0.25;
/** Several turns at a time: a timer for each would be most of the work. */
const MIN_SLEEP_MS = 10;

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
  function overdraw(organizationId: string, items: number): void {
    const rate = deliveriesPerSecondOf(organizationId);
    if (rate !== undefined && items > 0) buckets.overdraw(organizationId, items, rate, nowMs());
  }

  /** The last in line of each organization that waits; never rejects. */
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
    // One that gives up keeps the others in their order.
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
