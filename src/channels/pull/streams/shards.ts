import type { ShardLeases } from "../../../bus/sources/shard-leases.ts";
import { startLoop } from "../../../lib/loop.ts";
import type { Log } from "../../../log.ts";

export interface ShardsDeps {
  readonly leases: ShardLeases;
  /** No other worker has or had the same name. */
  readonly worker: string;
  readonly log: Log;
  /** Called when the set of shards that this worker may run has changed. */
  readonly onHeld: (held: ReadonlySet<number>) => void;
  /**
   * Stops the sources of these shards. Resolves when they have stopped or a grace period has passed. The next owner fences any run that is
   * still active.
   */
  readonly vacate: (shards: ReadonlySet<number>) => Promise<void>;
  readonly timing?: Partial<ShardTiming>;
}

export interface ShardTiming {
  /** How long a worker keeps its shards after it stops renewing their leases. */
  readonly ttlMs: number;
  /** Interval between ticks. Each tick renews this worker's leases and takes free shards. Must be at most a third of `ttlMs`. */
  readonly tickEveryMs: number;
  /** Maximum number of shards that one tick takes. It leaves some shards for workers that start at the same time. */
  readonly maxTakenPerTick: number;
  /** Maximum number of shards that one tick releases, so that a new worker does not interrupt all streams at once. */
  readonly maxReleasedPerTick: number;
}

/** Disposal stops the sources of this worker's shards and releases the shards. */
export interface Shards extends AsyncDisposable {
  readonly held: () => ReadonlySet<number>;
  /** Returns the number of live workers at the last tick. */
  readonly workers: () => number;
}

const TIMING: ShardTiming = { ttlMs: 15_000, tickEveryMs: 500, maxTakenPerTick: 64, maxReleasedPerTick: 8 };
/** Fraction of a lease that a worker leaves unused, to allow for clock drift and the time that runs need to stop. */
const SAFETY_MARGIN = 0.1;
const NO_SHARDS: ReadonlySet<number> = new Set();

/**
 * Acquires a fair share of the shards for this worker. Its sources never run longer than the lease, measured with the monotonic clock of
 * this process. So when a worker can no longer renew its lease, its runs end before another worker may start them.
 */
export function startShards(deps: ShardsDeps): Shards {
  const { leases, worker, log, onHeld, vacate } = deps;
  const { ttlMs, maxTakenPerTick, maxReleasedPerTick, ...timing } = { ...TIMING, ...deps.timing };
  const tickEveryMs = Math.min(timing.tickEveryMs, ttlMs / 3);
  const releasing = new Set<number>();
  const releases = new Set<Promise<void>>();
  let held = NO_SHARDS;
  let workers = 0;
  let watchdog: NodeJS.Timeout | undefined;

  function setHeld(shards: readonly number[]): void {
    if (shards.length === held.size && shards.every((shard) => held.has(shard))) return;
    held = new Set(shards);
    onHeld(held);
  }

  async function tick(signal: AbortSignal): Promise<void> {
    const sentAtMs = performance.now();
    const {
      workers: live,
      share,
      held: leased,
    } = await leases.renew(worker, { ttlMs, most: maxTakenPerTick });
    const leftMs = sentAtMs + ttlMs * (1 - SAFETY_MARGIN) - performance.now();
    if (signal.aborted) return;
    // The response took so long that the lease may have ended already.
    if (leftMs <= 0) return setHeld([]);
    clearTimeout(watchdog);
    watchdog = setTimeout(expire, leftMs);
    workers = live;
    const kept = leased.filter((shard) => !releasing.has(shard));
    const surplus = Math.max(0, leased.length - share - releasing.size);
    const released = kept.slice(kept.length - Math.min(surplus, maxReleasedPerTick, kept.length));
    for (const shard of released) releasing.add(shard);
    setHeld(kept.filter((shard) => !releasing.has(shard)));
    if (released.length > 0) release(released);
  }

  function expire(): void {
    if (held.size === 0) return;
    log.warn(
      { event: "shard_lease.lost", shards: held.size },
      "shard lease expired; stopping its sources on this worker",
    );
    setHeld([]);
  }

  function release(shards: readonly number[]): void {
    const released = vacate(new Set(shards))
      .then(() => leases.release(worker, shards))
      // If releasing fails, the shards are still leased at the next tick, which then keeps or releases them.
      .catch((error: unknown) =>
        log.debug({ event: "shard_lease.shards_not_released", err: error }, "could not release shards"),
      )
      .finally(() => {
        for (const shard of shards) releasing.delete(shard);
        releases.delete(released);
      });
    releases.add(released);
  }

  const loop = startLoop({
    step: tick,
    everyMs: tickEveryMs,
    retry: { initialMs: tickEveryMs, maxMs: tickEveryMs, factor: 1, jitter: 0 },
    onFailing: (err) => log.warn({ event: "shard_lease.failing", err }, "could not renew the shard lease"),
    onRecovered: () => log.info({ event: "shard_lease.recovered" }, "shard lease is renewed again"),
  });
  return {
    held: () => held,
    workers: () => workers,
    async [Symbol.asyncDispose]() {
      const stopped = loop[Symbol.asyncDispose]();
      clearTimeout(watchdog);
      const left = held;
      setHeld([]);
      await Promise.all([vacate(left), stopped, ...releases]);
      await leases.leave(worker).catch((error: unknown) => {
        log.warn(
          { event: "shard_lease.not_released", err: error },
          "could not release the shard lease; the lease will expire",
        );
      });
    },
  };
}
