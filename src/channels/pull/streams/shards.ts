import type { ShardLeases } from "../../../bus/sources/shard-leases.ts";
import { startLoop } from "../../../lib/loop.ts";
import type { Log } from "../../../log.ts";

export interface ShardsDeps {
  readonly leases: ShardLeases;
  /** Unlike that of all other workers, those of before included. */
  readonly worker: string;
  readonly log: Log;
  /** Told whenever the shards whose sources may run here have changed. */
  readonly onHeld: (held: ReadonlySet<number>) => void;
  /** Resolves when no source of these shards runs here any more, or soon after: what still runs is fenced by its successor. */
  readonly vacate: (shards: ReadonlySet<number>) => Promise<void>;
  readonly timing?: Partial<ShardTiming>;
}

export interface ShardTiming {
  /** How long a worker that fell silent keeps its shards. */
  readonly ttlMs: number;
  /** How soon a free shard is noticed; leases are renewed as often, at a third of their time at least. */
  readonly tickEveryMs: number;
  /** Taken in one tick at most: a worker that comes meanwhile finds some left. */
  readonly maxTakenPerTick: number;
  /** Given in one tick at most: a worker that comes does not stop everything at once. */
  readonly maxReleasedPerTick: number;
}

/** The shards of this worker. Disposal vacates them and gives them back. */
export interface Shards extends AsyncDisposable {
  readonly held: () => ReadonlySet<number>;
  /** Live workers, as of the last tick. */
  readonly workers: () => number;
}

const TIMING: ShardTiming = { ttlMs: 15_000, tickEveryMs: 500, maxTakenPerTick: 64, maxReleasedPerTick: 8 };
/** The part of a lease that is not used: clocks do not run alike, and what was stopped needs a moment to end. */
const SAFETY_MARGIN = 0.1;
const NO_SHARDS: ReadonlySet<number> = new Set();

/**
 * Keeps a fair share of the shards for this worker, and lets none run here past its lease: by this process's own clock, which goes
 * on while it is stopped, so that a worker that cannot renew has ended its runs before another may begin them.
 */
export function startShards(deps: ShardsDeps): Shards {
  const { leases, worker, log, onHeld, vacate } = deps;
  const { ttlMs, maxTakenPerTick, maxReleasedPerTick, ...timing } = { ...TIMING, ...deps.timing };
  const tickEveryMs = Math.min(timing.tickEveryMs, ttlMs / 3);
  /** Those that are being given away, until they are. */
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
    // The answer came so late that it is worth nothing.
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
      "lease on shards ran out; their sources stop on this worker",
    );
    setHeld([]);
  }

  function release(shards: readonly number[]): void {
    const released = vacate(new Set(shards))
      .then(() => leases.release(worker, shards))
      // Where it fails, the next tick finds them still held, and they are taken up again or given anew.
      .catch((error: unknown) =>
        log.debug({ event: "shard_lease.shards_not_released", err: error }, "shards could not be given back"),
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
    onFailing: (err) => log.warn({ event: "shard_lease.failing", err }, "the lease on shards is not renewed"),
    onRecovered: () => log.info({ event: "shard_lease.recovered" }, "the lease on shards is renewed again"),
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
        log.warn({ event: "shard_lease.not_released", err: error }, "lease on shards is left to run out");
      });
    },
  };
}
