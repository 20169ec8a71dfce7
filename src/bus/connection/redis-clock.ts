import type { Clock } from "../../lib/clock.ts";
import { startLoop } from "../../lib/loop.ts";
import type { Log } from "../../log.ts";
import type { RedisBus } from "./redis.ts";

export interface RedisClockDeps {
  readonly redis: Pick<RedisBus, "call">;
  readonly log: Log;
  /** This machine's clock. Default: `Date.now`. */
  readonly clock?: Clock;
  readonly everyMs?: number;
}

/** The clock of Redis, by which all workers decide when jobs are due. Disposal stops the comparison with this machine's clock. */
export interface RedisClock extends AsyncDisposable {
  /** Returns the time of Redis in ms. Returns this machine's time if the difference is small, or if Redis has not replied yet. */
  readonly now: Clock;
  /**
   * Returns by how many ms this machine's clock is ahead of Redis. Negative if it is behind, and 0 if the difference is below one
   * second.
   */
  readonly aheadMs: () => number;
  /** Like `aheadMs`, but includes differences below one second. Use it for display only. */
  readonly differenceMs: () => number;
}

/** Minimum difference of two clocks, in ms. Smaller differences are ignored, because the reply time of Redis makes them unreliable. */
const AGREE_MS = 1_000;
const WARN_MS = 5_000;
/** Maximum reply time for a comparison, in ms. Slower replies are ignored, because they make the comparison imprecise. */
const MAX_REPLY_MS = 1_000;

/**
 * Starts comparing this machine's clock with that of Redis. Between two comparisons, the monotonic clock counts on, so that changes
 * of the system clock have no effect.
 */
export async function startRedisClock(deps: RedisClockDeps): Promise<RedisClock> {
  const { redis, log, clock = Date.now, everyMs = 5_000 } = deps;
  let known: { readonly redisMs: number; readonly atMs: number } | undefined;
  let isReported = false;

  const redisMs = (): number =>
    known === undefined ? clock() : known.redisMs + (performance.now() - known.atMs);
  const differenceMs = (): number => Math.round(clock() - redisMs());
  const aheadMs = (): number => {
    const ms = differenceMs();
    return Math.abs(ms) < AGREE_MS ? 0 : ms;
  };

  async function compare(): Promise<void> {
    const sentAtMs = performance.now();
    const [seconds, microseconds] = (await redis.call("time", [])) as [string, string];
    const atMs = performance.now();
    if (atMs - sentAtMs > MAX_REPLY_MS) return;
    known = { redisMs: Number(seconds) * 1_000 + Number(microseconds) / 1_000, atMs: (sentAtMs + atMs) / 2 };
    const differs = Math.abs(differenceMs()) > WARN_MS;
    if (differs === isReported) return;
    isReported = differs;
    const facts = { aheadSeconds: Math.round(differenceMs() / 1_000) };
    if (differs)
      log.warn(
        { event: "clock.differs", ...facts },
        "this machine's clock differs from the clock of Redis; check time synchronization on both machines",
      );
    else
      log.info(
        { event: "clock.agrees", ...facts },
        "this machine's clock agrees with the clock of Redis again",
      );
  }

  await compare().catch(() => {});
  const loop = startLoop({
    step: compare,
    everyMs,
    waitsFirst: true,
    onFailing: (err) => log.debug({ event: "clock.unknown", err }, "reading the time of Redis failed"),
  });
  return {
    now: () => clock() - aheadMs(),
    aheadMs,
    differenceMs,
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}
