import type { Log } from "../log.ts";
import type { RedisBus } from "./redis.ts";

export interface RetentionLimits {
  readonly maxAgeSeconds: number;
  readonly maxEntries: number;
  readonly maxBytes: number;
}

export interface RetainedTopic extends RetentionLimits {
  readonly topic: string;
}

/** Trims one topic to its limits; answers how many entries went and how many are left. */
export declare function trimTopic(
  redis: RedisBus,
  topic: RetainedTopic,
): Promise<{ readonly removed: number; readonly length: number }>;

export interface RetentionSweeper extends AsyncDisposable {
  /** Tells of an event appended, so that a busy topic is trimmed before the next sweep. */
  noteAppended(topic: string, bytes: number, maxBytes: number): void;
}

export declare function startRetentionSweeper(deps: {
  readonly redis: RedisBus;
  readonly log: Log;
  /** All topics there are; asked for at each sweep. */
  readonly topics: () => AsyncIterable<RetainedTopic>;
  readonly intervalMs?: number;
  /** Told of each swept topic, so that the row of a retired one can go once its stream is empty. */
  readonly onSwept?: (topic: string, left: number) => void | Promise<void>;
}): RetentionSweeper;
