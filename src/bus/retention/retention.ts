import { startLoop } from "../../lib/loop.ts";
import { luaScript } from "../../lib/lua.ts";
import type { Log } from "../../log.ts";
import type { RedisBus } from "../connection/redis.ts";

export interface RetentionLimits {
  readonly maxAgeSeconds: number;
  readonly maxEntries: number;
  /** Maximum memory of the stream in bytes, as estimated by MEMORY USAGE. It includes the overhead of Redis. */
  readonly maxBytes: number;
}

export interface RetainedTopic extends RetentionLimits {
  readonly topic: string;
}

const MEMORY_SAMPLES = 20;
/** Maximum number of entries that one call trims, so that the call blocks Redis only briefly. */
const MAX_ENTRIES_PER_CALL = 20_000;
/** Share of `maxBytes` that a topic may grow, as a divisor. After more growth, it is trimmed before the next sweep. */
const GROWTH_DIVISOR = 16;
const MIN_GROWTH_BYTES = 256 * 1024;
/** Maximum number of consecutive failures. After it, the sweep stops, because Redis is probably unreachable. */
const MAX_FAILURES_IN_A_ROW = 10;
const MAX_WATCHED_TOPICS = 100_000;
const DEFAULT_INTERVAL_MS = 60_000;
/** Divides the pause between sweeps while `isHurried` returns true. */
const HURRIED_DIVISOR = 3;

/**
 * Returns a function that trims a topic to its limits. That function returns the number of removed entries, and the remaining
 * entries and bytes.
 */
export function createTrimTopic({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./trim.lua", import.meta.url));
  return async ({ topic, maxAgeSeconds, maxEntries, maxBytes }: RetainedTopic) => {
    let removed = 0;
    for (;;) {
      const args = [maxAgeSeconds * 1000, maxEntries, maxBytes, MEMORY_SAMPLES, MAX_ENTRIES_PER_CALL];
      const reply = (await runLua([topic], args)) as [number, number, number, number];
      removed += reply[0];
      if (reply[2] === 0) return { removed, length: reply[1], bytes: reply[3] };
    }
  };
}

/**
 * Returns a function that trims entries which all consumer groups of a topic have acknowledged. That function returns the remaining
 * bytes.
 */
export function createTrimAcknowledged({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./trim-acknowledged.lua", import.meta.url));
  return async (topic: string): Promise<number> => {
    for (;;) {
      const reply = (await runLua([topic], [MEMORY_SAMPLES, MAX_ENTRIES_PER_CALL])) as [
        number,
        number,
        number,
      ];
      if (reply[2] === 0) return reply[1];
    }
  };
}

export interface RetentionSweeperDeps {
  readonly redis: RedisBus;
  readonly log: Log;
  readonly topics: () => AsyncIterable<RetainedTopic>;
  /** Pause between sweeps. Default: one minute. */
  readonly intervalMs?: number;
  /** Called after each sweep. Returns true if the next sweep should start sooner. */
  readonly isHurried?: () => boolean;
  /**
   * Called after a topic was trimmed, with its remaining entries and bytes. The caller deletes the database row of a retired topic once the
   * topic is empty, and adds the bytes to the organization's usage.
   */
  readonly onSwept?: (topic: string, left: number, bytes: number) => void | Promise<void>;
}

/** Starts trimming all topics periodically. Publishing limits only the number of entries, not their age and bytes. */
export function startRetentionSweeper(deps: RetentionSweeperDeps) {
  const { log, topics, onSwept, intervalMs = DEFAULT_INTERVAL_MS, isHurried = () => false } = deps;
  const trim = createTrimTopic(deps);
  const growth = new Map<string, number>();
  const due = new Map<string, number>();
  let trimming: Promise<void> | undefined;

  async function trimDue() {
    for (const [topic, maxBytes] of due) {
      due.delete(topic);
      await trim({ topic, ...UNLIMITED, maxBytes }).catch((err: unknown) => {
        log.warn({ event: "retention.trim_failed", topic, err }, "trimming a busy topic failed");
      });
    }
    trimming = undefined;
  }

  async function sweep(signal: AbortSignal) {
    let swept = 0;
    let removed = 0;
    let failedInARow = 0;
    for await (const topic of topics()) {
      if (signal.aborted) return;
      try {
        const trimmed = await trim(topic);
        swept++;
        removed += trimmed.removed;
        await onSwept?.(topic.topic, trimmed.length, trimmed.bytes);
        failedInARow = 0;
      } catch (err) {
        // Continue with the other topics, because their entries must not fill the memory either.
        if (++failedInARow >= MAX_FAILURES_IN_A_ROW) throw err;
        log.warn({ event: "retention.trim_failed", topic: topic.topic, err }, "trimming a topic failed");
      }
    }
    log.debug({ event: "retention.swept", swept, removed }, "retention sweep finished");
  }

  const loop = startLoop({
    step: sweep,
    everyMs: () => (isHurried() ? intervalMs / HURRIED_DIVISOR : intervalMs),
    retry: { initialMs: intervalMs, maxMs: intervalMs, factor: 1, jitter: 0.5 },
    onFailing: (err) =>
      log.warn({ event: "retention_sweep.failing", err }, "the retention sweep failed and was stopped early"),
    onRecovered: () => log.info({ event: "retention_sweep.recovered" }, "the retention sweep works again"),
  });

  return {
    /**
     * Counts the bytes of an appended event. A topic that grew by 1/16 of `maxBytes` (at least 256 KiB) is trimmed before the next sweep.
     * If n gateways write to a topic, it can exceed the limit by n/16, plus the events that arrive during the trim.
     */
    noteAppended(topic: string, bytes: number, maxBytes: number): void {
      const grown = (growth.get(topic) ?? 0) + bytes;
      if (grown < Math.max(maxBytes / GROWTH_DIVISOR, MIN_GROWTH_BYTES)) {
        // Limit the size of the map. Lost counts do little harm, because the next sweep trims these topics anyway.
        if (growth.size >= MAX_WATCHED_TOPICS) growth.clear();
        growth.set(topic, grown);
        return;
      }
      growth.delete(topic);
      due.set(topic, maxBytes);
      trimming ??= trimDue();
    },
    async [Symbol.asyncDispose](): Promise<void> {
      due.clear();
      await loop[Symbol.asyncDispose]();
      await trimming;
    },
  };
}

/** Limits that are never reached, for trimming a topic only by bytes. */
export const UNLIMITED = { maxAgeSeconds: 2 ** 31, maxEntries: Number.MAX_SAFE_INTEGER };
