import type { Clock } from "../lib/clock.ts";
import type { Log } from "../log.ts";
import type { Queryable, Trx } from "./database.ts";

/** What can change under a cache. `key`: the channel's number; the id of the others. */
export const CHANGE_KINDS = ["channel", "app", "subscription"] as const;
export interface Change {
  readonly kind: (typeof CHANGE_KINDS)[number];
  readonly key: string;
}

/** Says in the writer's transaction what it changes. */
export declare function recordChange(trx: Trx, change: Change): Promise<void>;

export interface ChangeFeedOptions {
  readonly db: Queryable;
  readonly log: Log;
  readonly clock: Clock;
  /** Drop what changed; called again with the same change when a poll fails half-way. A throw fails the poll. */
  readonly onChange: (change: Change) => void;
  /** Changes may have been missed: drop everything. */
  readonly onReset: () => void;
  readonly pollEveryMs?: number;
  readonly retentionSeconds?: number;
}

export interface ChangeFeed extends AsyncDisposable {
  /** When the last read that succeeded was begun: everything committed before that has been handed on. */
  readonly lastReadAtMs: () => number;
  /** Reads now, beside the beat: what this process has just written is in force when it resolves. */
  readonly readNow: () => Promise<void>;
}

/** Starts at what is visible now; build caches after that. @throws UnavailableError */
export declare function startChangeFeed(options: ChangeFeedOptions): Promise<ChangeFeed>;
