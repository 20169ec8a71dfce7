export interface HandlerSettings {
  readonly url: string;
  readonly connectionId: string | null;
  /** Timeout of one attempt, from the start of the request to the end of the response. */
  readonly timeoutMs: number;
  /** Maximum number of concurrent attempts per gateway. */
  readonly concurrency: number;
  /** Whether to send the events of each topic in order, one at a time. A failing event blocks its topic. */
  readonly ordered: boolean;
  /** Whether to send test events to the handler. Defaults to false. */
  readonly testEvents?: boolean;
}

export interface HandlerAttempt {
  /** RFC 3339 timestamp. */
  readonly at: string;
  /** `null` when the handler sent no response. */
  readonly status: number | null;
  /** Reason for the failure: `http` for an error status, otherwise the code of the network error. */
  readonly code: string;
  readonly durationMs: number;
}

/**
 * An event that waits to be sent to its handler again. It contains a copy of the stream entry, so that trimming the topic cannot lose the
 * event.
 */
export interface PendingRetry {
  readonly subscriptionId: string;
  readonly topic: string;
  readonly entryId: string;
  /** Fields of the stream entry, with alternating names and values. */
  readonly fields: readonly string[];
  /** Time of the first attempt, or of the request to send the event again. */
  readonly firstAtMs: number;
  /** Earlier attempts, oldest first. */
  readonly attempts: readonly HandlerAttempt[];
}

/** Returns the earlier attempts of an event that waits for a retry, or `undefined` if none is scheduled. @throws UnavailableError */
export type FindRetry = (
  event: Pick<PendingRetry, "subscriptionId" | "topic" | "entryId">,
) => Promise<Pick<PendingRetry, "attempts"> | undefined>;

/** Sends an event to its handler again. A repeated `demandId` has no effect. @throws UnavailableError */
export type SendAgain = (demandId: string, event: PendingRetry) => Promise<void>;
