import { setTimeout as delay } from "node:timers/promises";
import type { Log } from "../../log.ts";
import type { RedisBus } from "../connection/redis.ts";
import { loadScript, runScript } from "../scripts.ts";

export interface RetentionLimits {
  readonly maxAgeSeconds: number;
  readonly maxEntries: number;
  /** Estimated by MEMORY USAGE: what the stream takes in Redis, not what was sent. */
  readonly maxBytes: number;
}

export interface RetainedTopic extends RetentionLimits {
  readonly topic: string;
}

/** Trims one topic to its limits; answers how many entries went and how many are left. */
export type TrimTopic = (
  topic: RetainedTopic,
) => Promise<{ readonly removed: number; readonly length: number }>;

const MEMORY_SAMPLES = 20;
/** A bounded time in which Redis answers nobody else. */
const MOST_AT_ONCE = 20_000;
/** Part of `maxBytes` that a topic may grow by, as this process sees it, before it is trimmed out of turn. */
const GROWTH_PART = 16;
const LEAST_GROWTH_BYTES = 256 * 1024;
/** After so many the bus is taken to be away. */
const MOST_FAILURES_IN_A_ROW = 10;
const MAX_WATCHED_TOPICS = 100_000;
const DEFAULT_INTERVAL_MS = 60_000;

export function createTrimTopic({ redis }: { readonly redis: RedisBus }): TrimTopic {
  const script = loadScript(new URL("./trim.lua", import.meta.url));
  return async ({ topic, maxAgeSeconds, maxEntries, maxBytes }) => {
    let removed = 0;
    for (;;) {
      const args = [maxAgeSeconds * 1000, maxEntries, maxBytes, MEMORY_SAMPLES, MOST_AT_ONCE];
      const reply = (await runScript(redis, script, [topic], args)) as [number, number, number];
      removed += reply[0];
      if (reply[2] === 0) return { removed, length: reply[1] };
    }
  };
}

export interface RetentionSweeper extends AsyncDisposable {
  /**
   * Tells of an event appended: a topic that grows by a sixteenth of `maxBytes` (256 KiB at least) is trimmed
   * to it before the next sweep. With n gateways on a topic it may so overshoot by n sixteenths and what
   * comes in while it is trimmed.
   */
  noteAppended(topic: string, bytes: number, maxBytes: number): void;
}

export interface RetentionSweeperDeps {
  readonly redis: RedisBus;
  readonly log: Log;
  /** All topics there are; asked for at each sweep. */
  readonly topics: () => AsyncIterable<RetainedTopic>;
  /** Pause between sweeps; default a minute. */
  readonly intervalMs?: number;
  /** Told of each swept topic, so that the row of a retired one can go once its stream is empty. */
  readonly onSwept?: (topic: string, left: number) => void | Promise<void>;
}

/**
 * Keeps all topics within their limits: Redis trims by itself only when something is appended, and by entries
 * only.
 */
export function startRetentionSweeper(deps: RetentionSweeperDeps): RetentionSweeper {
  const { log, topics, onSwept, intervalMs = DEFAULT_INTERVAL_MS } = deps;
  const trim = createTrimTopic(deps);
  const stop = new AbortController();
  const growth = new Map<string, number>();
  const due = new Map<string, number>();
  let trimming: Promise<void> | undefined;

  async function trimDue() {
    for (const [topic, maxBytes] of due) {
      due.delete(topic);
      await trim({ topic, ...UNLIMITED, maxBytes }).catch((error: unknown) => {
        log.warn({ topic, err: error }, "a busy topic could not be trimmed");
      });
    }
    trimming = undefined;
  }

  async function sweep() {
    let swept = 0;
    let removed = 0;
    let failedInARow = 0;
    for await (const topic of topics()) {
      if (stop.signal.aborted) return;
      try {
        const trimmed = await trim(topic);
        swept++;
        removed += trimmed.removed;
        await onSwept?.(topic.topic, trimmed.length);
        failedInARow = 0;
      } catch (error) {
        // Whatever is wrong with one topic, the others are not to fill the memory meanwhile.
        if (++failedInARow >= MOST_FAILURES_IN_A_ROW) throw error;
        log.warn({ topic: topic.topic, err: error }, "a topic could not be swept");
      }
    }
    log.debug({ swept, removed }, "retention sweep");
  }

  async function run() {
    while (!stop.signal.aborted) {
      await sweep().catch((error: unknown) => log.warn({ err: error }, "the retention sweep was cut short"));
      await delay(intervalMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  }
  const running = run();

  return {
    noteAppended(topic, bytes, maxBytes) {
      const grown = (growth.get(topic) ?? 0) + bytes;
      if (grown < Math.max(maxBytes / GROWTH_PART, LEAST_GROWTH_BYTES)) {
        // Forgetting a count delays a trim until the next sweep; unbounded counts would be a leak.
        if (growth.size >= MAX_WATCHED_TOPICS) growth.clear();
        growth.set(topic, grown);
        return;
      }
      growth.delete(topic);
      due.set(topic, maxBytes);
      trimming ??= trimDue();
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      due.clear();
      await running;
      await trimming;
    },
  };
}

const UNLIMITED = { maxAgeSeconds: 2 ** 31, maxEntries: Number.MAX_SAFE_INTEGER };
