import type { TakenCounts } from "../../metrics/event-counts.ts";
import { LATENCY_BUCKETS } from "../../metrics/latency-buckets.ts";
import { formatSeriesKey, type SeriesName } from "./series-names.ts";

/** A count that is not written yet. Its series may have no id yet. */
export interface PendingCount {
  readonly series: SeriesName;
  readonly metric: string;
  readonly minuteMs: number;
  readonly detail: string;
  count: number;
  readonly buckets: Uint32Array | undefined;
}

const MINUTE_MS = 60_000;
/**
 * Number of pending counts above which later minutes are added to the current one. Their sums stay exact while PostgreSQL is
 * unavailable, and only their minutes are lost.
 */
const MAX_PENDING = 50_000;
/** Number of pending counts above which those of further series are dropped. A count takes about 200 bytes. */
const MAX_HELD = 2 * MAX_PENDING;

/** Collects counts until they are written. Memory is limited. */
export function createPendingCounts({
  onLost,
  maxPending = MAX_PENDING,
  maxHeld = MAX_HELD,
}: {
  /** Called with the number of counts that were dropped. */
  readonly onLost: (counts: number) => void;
  readonly maxPending?: number;
  readonly maxHeld?: number;
}) {
  const pending = new Map<string, PendingCount>();
  let minuteMs = Number.NEGATIVE_INFINITY;

  function find(series: SeriesName, metric: string, detail: string): PendingCount | undefined {
    const key = `${formatSeriesKey(series)} ${metric} ${detail} ${minuteMs}`;
    const known = pending.get(key);
    if (known !== undefined || pending.size >= maxHeld) return known;
    const buckets = metric === "latency" ? new Uint32Array(LATENCY_BUCKETS) : undefined;
    const added = { series, metric, minuteMs, detail, count: 0, buckets };
    pending.set(key, added);
    return added;
  }

  function add(name: SeriesName, metric: string, count: number, detail = ""): void {
    if (count === 0) return;
    const into = find(name, metric, detail);
    if (into === undefined) onLost(count);
    else into.count += count;
  }

  function addLatency(name: SeriesName, latency: Uint32Array): void {
    const count = latency.reduce((sum, one) => sum + one, 0);
    const into = find(name, "latency", "");
    if (into?.buckets === undefined) {
      onLost(count);
      return;
    }
    into.count += count;
    for (const [bucket, observed] of latency.entries())
      into.buckets[bucket] = (into.buckets[bucket] ?? 0) + observed;
  }

  return {
    /** Adds counts. @param atMs time since which the event path has counted them */
    add({ channels, handlers }: TakenCounts, atMs: number): void {
      if (pending.size < maxPending) minuteMs = Math.floor(atMs / MINUTE_MS) * MINUTE_MS;
      for (const { channel: of, types, quarantined, rejected, received, ignored, latency } of channels) {
        const name = { organizationId: of.organizationId, appId: of.appId, channel: of.uid, type: "" };
        add(name, "received", received);
        add(name, "ignored", ignored);
        for (const [reason, items] of quarantined) add(name, "quarantined", items, reason);
        for (const [status, requests] of rejected) add(name, "rejected", requests, String(status));
        if (latency !== undefined) addLatency(name, latency);
        for (const [type, events] of types) {
          const ofType = { ...name, type };
          add(ofType, "published", events.published);
          add(ofType, "recovered", events.recovered);
          add(ofType, "duplicate", events.duplicate);
        }
      }
      for (const { organizationId, appId, channelUid, type, succeeded, failed } of handlers) {
        const name = { organizationId, appId, channel: channelUid, type };
        add(name, "handlerSucceeded", succeeded);
        add(name, "handlerFailed", failed);
      }
    },
    size: () => pending.size,
    /** Sum of all pending counts. */
    total: (): number => [...pending.values()].reduce((sum, { count }) => sum + count, 0),
    /** Returns the oldest counts. They stay pending, and may increase, until `remove`. */
    peek(limit: number): readonly PendingCount[] {
      const oldest: PendingCount[] = [];
      for (const count of pending.values()) if (oldest.push(count) === limit) break;
      return oldest;
    },
    remove(counts: readonly PendingCount[]): void {
      const removed = new Set(counts);
      for (const [key, count] of pending) if (removed.has(count)) pending.delete(key);
    },
  };
}
