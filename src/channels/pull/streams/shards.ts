import type { ShardLeases } from "../../../bus/sources/shard-leases.ts";
import { startLoop } from "../../../lib/loop.ts";
import type { Log } from "../../../log.ts";

export interface ShardsDeps {
  readonly leases: ShardLeases;
  /** Name of this worker process. Names are never reused. */
  readonly worker: string;
  readonly log: Log;
  /** Called when this worker gains or loses shards, which are groups of sources that it may run. */
  readonly onHeld: (held: ReadonlySet<number>) => void;
  /**
   * Stops the sources in these shards. Resolves when they have stopped or after a grace period. The next worker blocks writes of sources
   * that still run.
   */
  readonly vacate: (shards: ReadonlySet<number>) => Promise<void>;
  readonly timing?: Partial<ShardTiming>;
}

export interface ShardTiming {
  /** How long a worker keeps its shards after it has stopped renewing its leases, in ms. */
  readonly ttlMs: number;
  /** Interval at which this worker renews its leases and takes free shards. Must be at most a third of `ttlMs`. */
  readonly tickEveryMs: number;
  /** Maximum number of shards to take at once, so that other workers that start at the same time get shards too. */
  readonly maxTakenPerTick: number;
  /** Maximum number of shards to release at once, so that a new worker does not interrupt all streams at the same time. */
  readonly maxReleasedPerTick: number;
}

/** The shards of this worker, which are groups of sources. Disposal stops their sources and releases the shards. */
export interface Shards extends AsyncDisposable {
  readonly held: () => ReadonlySet<number>;
  /** Returns the number of live workers, as of the last lease renewal. */
  readonly workers: () => number;
}

const TIMING: ShardTiming = { ttlMs: 15_000, tickEveryMs: 500, maxTakenPerTick: 64, maxReleasedPerTick: 8 };
/** Fraction of a lease that a worker does not use. It allows for clock drift and for the time that sources need to stop. */
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
    // The response was so slow that the lease may already have expired.
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
      // If the release fails, the next tick decides again whether to keep these shards.
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
