/** Where a subscription's events are sent. */
export interface HandlerSettings {
  readonly url: string;
  readonly connectionId: string | null;
  /** For one attempt, from the call to the end of its answer. */
  readonly timeoutMs: number;
  /** Attempts under way at once, by each gateway. */
  readonly concurrency: number;
  /** One event of a topic at a time, in order; one that fails holds its topic back. */
  readonly ordered: boolean;
  /** It is sent events that somebody published to try a channel out; absent: it is not. */
  readonly testEvents?: boolean;
}

/** One attempt at a handler, as dead letters tell of it. */
export interface HandlerAttempt {
  /** RFC 3339. */
  readonly at: string;
  /** Null where no answer came. */
  readonly status: number | null;
  /** Why it failed: `http` for a status, else what stood in the way of an answer. */
  readonly code: string;
  readonly durationMs: number;
}

/** An event on its way to a handler that did not take it at once; it carries its own copy. */
export interface PendingDelivery {
  readonly subscriptionId: string;
  readonly topic: string;
  readonly entryId: string;
  /** The entry: name, value, name, value … */
  readonly fields: readonly string[];
  /** When it was sent first, or again on demand. */
  readonly firstAtMs: number;
  /** Those of before, oldest first. */
  readonly attempts: readonly HandlerAttempt[];
}

/** The attempts so far at an event that is to be sent to its handler once more; undefined where it is not. @throws UnavailableError */
export type FindRetry = (
  event: Pick<PendingDelivery, "subscriptionId" | "topic" | "entryId">,
) => Promise<Pick<PendingDelivery, "attempts"> | undefined>;

/** Sends an event to its handler on demand; the same demand twice sends it once. @throws UnavailableError */
export type SendAgain = (demandId: string, delivery: PendingDelivery) => Promise<void>;
