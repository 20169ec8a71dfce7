import type { Clock } from "../../lib/clock.ts";
import { startLoop } from "../../lib/loop.ts";
import type { Log } from "../../log.ts";
import type { RedisBus } from "./redis.ts";

export interface RedisClockDeps {
  readonly redis: Pick<RedisBus, "call">;
  readonly log: Log;
  /** This machine's clock. */
  readonly clock?: Clock;
  readonly everyMs?: number;
}

/** The clock by which all workers agree on what is due: that of Redis. Disposal stops comparing. */
export interface RedisClock extends AsyncDisposable {
  /** Redis time in ms; by this machine's clock where the two agree, or until Redis has been asked. */
  readonly now: Clock;
  /** By how much this machine's clock is ahead (negative: behind), as `now` counts with it: 0 where the two agree. */
  readonly aheadMs: () => number;
  /** The same as it is, for people. */
  readonly differenceMs: () => number;
}

/** Two clocks that differ by less agree: each comparison is off by the time that an answer takes. */
const AGREE_MS = 1_000;
const WARN_MS = 5_000;
/** An answer that took longer tells no time. */
const MAX_ANSWER_MS = 1_000;

/**
 * Compares this machine's clock with that of Redis, again and again. Between two answers the time goes on by the monotonic clock of
 * the process, so that a clock that is set meanwhile changes nothing.
 */
export async function startRedisClock(deps: RedisClockDeps): Promise<RedisClock> {
  const { redis, log, clock = Date.now, everyMs = 5_000 } = deps;
  let known: { readonly redisMs: number; readonly atMs: number } | undefined;
  let isTold = false;

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
    if (atMs - sentAtMs > MAX_ANSWER_MS) return;
    known = { redisMs: Number(seconds) * 1_000 + Number(microseconds) / 1_000, atMs: (sentAtMs + atMs) / 2 };
    const differs = Math.abs(differenceMs()) > WARN_MS;
    if (differs === isTold) return;
    isTold = differs;
    const facts = { aheadSeconds: Math.round(differenceMs() / 1_000) };
    if (differs) log.warn({ event: "clock.differs", ...facts }, "this machine's clock is not that of Redis");
    else
      log.info({ event: "clock.agrees", ...facts }, "this machine's clock agrees with that of Redis again");
  }

  await compare().catch(() => {});
  const loop = startLoop({
    step: compare,
    everyMs,
    waitsFirst: true,
    onFailing: (err) => log.debug({ event: "clock.unknown", err }, "the time of Redis cannot be read"),
  });
  return {
    now: () => clock() - aheadMs(),
    aheadMs,
    differenceMs,
    [Symbol.asyncDispose]: () => loop[Symbol.asyncDispose](),
  };
}
