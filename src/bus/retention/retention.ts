import { startLoop } from "../../lib/loop.ts";
import { luaScript } from "../../lib/lua.ts";
import type { Log } from "../../log.ts";
import type { RedisBus } from "../connection/redis.ts";

export interface RetentionLimits {
  readonly maxAgeSeconds: number;
  readonly maxEntries: number;
  /** Estimated by MEMORY USAGE: the memory of the stream in Redis, not the bytes sent. */
  readonly maxBytes: number;
}

export interface RetainedTopic extends RetentionLimits {
  readonly topic: string;
}

const MEMORY_SAMPLES = 20;
/** A bounded time in which Redis answers nobody else. */
const MAX_ENTRIES_PER_CALL = 20_000;
/** Part of `maxBytes` that a topic may grow by, as this process sees it, before it is trimmed out of turn. */
const GROWTH_DIVISOR = 16;
const MIN_GROWTH_BYTES = 256 * 1024;
/** After so many the bus is taken to be away. */
const MAX_FAILURES_IN_A_ROW = 10;
const MAX_WATCHED_TOPICS = 100_000;
const DEFAULT_INTERVAL_MS = 60_000;
/** In a hurry the pause between sweeps is divided by it. */
const HURRIED_DIVISOR = 3;

/** Trims a topic to its limits; answers how many entries went, and how many entries and bytes are left. */
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

/** Trims what all groups of a topic have acknowledged; answers the bytes that are left. */
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
  /** All topics there are; asked for at each sweep. */
  readonly topics: () => AsyncIterable<RetainedTopic>;
  /** Pause between sweeps; default a minute. */
  readonly intervalMs?: number;
  /** Asked after each sweep: true where the next one is wanted sooner. */
  readonly isHurried?: () => boolean;
  /** Told of each swept topic: the row of a retired one can go once its stream is empty, bytes count for its organization. */
  readonly onSwept?: (topic: string, left: number, bytes: number) => void | Promise<void>;
}

/**
 * Keeps all topics within their limits: Redis trims by itself only when something is appended, and by entries
 * only.
 */
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
        log.warn({ event: "retention.trim_failed", topic, err }, "a busy topic could not be trimmed");
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
        // One topic that fails must not let the others fill the memory.
        if (++failedInARow >= MAX_FAILURES_IN_A_ROW) throw err;
        log.warn({ event: "retention.trim_failed", topic: topic.topic, err }, "a topic could not be swept");
      }
    }
    log.debug({ event: "retention.swept", swept, removed }, "retention sweep");
  }

  const loop = startLoop({
    step: sweep,
    everyMs: () => (isHurried() ? intervalMs / HURRIED_DIVISOR : intervalMs),
    retry: { initialMs: intervalMs, maxMs: intervalMs, factor: 1, jitter: 0.5 },
    onFailing: (err) =>
      log.warn({ event: "retention_sweep.failing", err }, "the retention sweep was cut short"),
    onRecovered: () =>
      log.info({ event: "retention_sweep.recovered" }, "the retention sweep gets through again"),
  });

  return {
    /**
     * Tells of an event appended: a topic that grows by a sixteenth of `maxBytes` (256 KiB at least) is trimmed
     * to it before the next sweep. With n gateways on a topic it may so overshoot by n sixteenths and what
     * comes in while it is trimmed.
     */
    noteAppended(topic: string, bytes: number, maxBytes: number): void {
      const grown = (growth.get(topic) ?? 0) + bytes;
      if (grown < Math.max(maxBytes / GROWTH_DIVISOR, MIN_GROWTH_BYTES)) {
        // Forgetting a count delays a trim until the next sweep; unbounded counts would be a leak.
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

/** Beside bytes. */
export const UNLIMITED = { maxAgeSeconds: 2 ** 31, maxEntries: Number.MAX_SAFE_INTEGER };
