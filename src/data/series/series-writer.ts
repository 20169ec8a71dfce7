import { randomUUID } from "node:crypto";
import type { Clock } from "../../lib/clock.ts";
import { startLoop } from "../../lib/loop.ts";
import type { Log } from "../../log.ts";
import type { Metrics } from "../../metrics.ts";
import type { Queryable } from "../database.ts";
import { createPendingCounts, type PendingCount } from "./pending-counts.ts";
import { createSeriesIds, formatSeriesKey } from "./series-names.ts";
import { type CountsWrite, type SeriesCount, writeCounts } from "./write-counts.ts";

/** Writes the counts of the event path to PostgreSQL. Disposal writes the remaining counts. */
export interface SeriesWriter extends AsyncDisposable {
  /**
   * Writes the counts now, not only at the next interval.
   *
   * @throws UnavailableError
   */
  readonly write: () => Promise<void>;
}

export interface SeriesWriterDeps {
  readonly db: Queryable;
  readonly metrics: Pick<Metrics, "takeCounts" | "storeCountsWith" | "seriesFlushFailures" | "seriesLost">;
  readonly clock: Clock;
  readonly log: Log;
  readonly everyMs?: number;
}

/** Interval in ms between writes. A killed process loses the counts of at most one interval. */
const WRITE_EVERY_MS = 10_000;
/** Maximum number of counts in one statement. */
const MAX_WRITTEN = 20_000;
const RETRY = { initialMs: 1_000, maxMs: WRITE_EVERY_MS, factor: 2, jitter: 0.5 };

/**
 * Starts to write counts at fixed times of the clock, so that each full minute ends with a write and its counts are not mixed with those
 * of the next.
 */
export function startSeriesWriter(deps: SeriesWriterDeps): SeriesWriter {
  const { db, metrics, clock, log, everyMs = WRITE_EVERY_MS } = deps;
  const ids = createSeriesIds(db);
  const pending = createPendingCounts({ onLost: (counts) => metrics.seriesLost.inc(counts) });
  const writer = randomUUID();
  let sequence = 0;
  /** A write that may have been committed. It is repeated unchanged until it succeeds. */
  let unfinished: CountsWrite | undefined;
  let countedSinceMs = clock();
  let writing: Promise<void> | undefined;

  metrics.storeCountsWith((taken) => pending.add(taken, countedSinceMs));

  function take(): void {
    metrics.takeCounts();
    countedSinceMs = clock();
  }

  async function writeNext(): Promise<void> {
    unfinished ??= await prepare();
    if (unfinished === undefined) return;
    await writeCounts(db, unfinished);
    unfinished = undefined;
  }

  async function prepare(): Promise<CountsWrite | undefined> {
    const next = pending.peek(MAX_WRITTEN);
    if (next.length === 0) return undefined;
    const names = new Map(next.map(({ series }) => [formatSeriesKey(series), series]));
    const counts = merge(next, await ids.resolve(names));
    pending.remove(next);
    return { writer, sequence: ++sequence, counts };
  }

  async function writeAll(): Promise<void> {
    take();
    do await writeNext();
    while (pending.size() > 0);
  }

  /** Lets only one write run at a time, because the writes of a process are numbered. */
  async function write(): Promise<void> {
    while (writing !== undefined) await writing.catch(() => {});
    writing = writeAll().finally(() => {
      writing = undefined;
    });
    return writing;
  }

  const loop = startLoop({
    step: () =>
      write().catch((error: unknown) => {
        metrics.seriesFlushFailures.inc();
        throw error;
      }),
    everyMs: () => everyMs - (clock() % everyMs),
    waitsFirst: true,
    retry: RETRY,
    onFailing: (err) =>
      log.warn({ event: "series.failing", err }, "counts cannot be written; they are kept in memory"),
    onRecovered: () => log.info({ event: "series.recovered" }, "counts are written again"),
  });
  return {
    write,
    async [Symbol.asyncDispose]() {
      await loop[Symbol.asyncDispose]();
      await write().catch((err: unknown) => {
        const lost = pending.total() + sum(unfinished?.counts ?? []);
        metrics.seriesLost.inc(lost);
        log.warn({ event: "series.lost", err, lost }, "the last counts could not be written and are lost");
      });
    },
  };
}

/** Adds up counts of the same series, because series beyond the limit share one. Leaves out series without an id. */
function merge(pending: readonly PendingCount[], ids: ReadonlyMap<string, number>): readonly SeriesCount[] {
  const merged = new Map<string, SeriesCount & { count: number }>();
  for (const { series, metric, minuteMs, detail, count, buckets } of pending) {
    const seriesId = ids.get(formatSeriesKey(series));
    if (seriesId === undefined) continue;
    const key = `${seriesId} ${metric} ${minuteMs} ${detail}`;
    const before = merged.get(key);
    const all = addBuckets(before?.buckets, buckets);
    merged.set(key, {
      seriesId,
      metric,
      minuteMs,
      detail,
      count: count + (before?.count ?? 0),
      buckets: all,
    });
  }
  return [...merged.values()];
}

/** Adds up buckets, and cuts off the last ones if they are empty. */
function addBuckets(
  before: readonly number[] = [],
  buckets: Uint32Array | undefined,
): readonly number[] | undefined {
  if (buckets === undefined) return undefined;
  const last = Math.max(before.length, buckets.findLastIndex((count) => count > 0) + 1);
  return [...buckets.subarray(0, last)].map((count, bucket) => count + (before[bucket] ?? 0));
}

const sum = (counts: readonly SeriesCount[]): number => counts.reduce((total, { count }) => total + count, 0);
