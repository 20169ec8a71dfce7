import type { BatchLimits } from "./batch-request.ts";
import type { Definition } from "./definition.ts";

export interface HandlerSettings {
  readonly url: string;
  readonly connectionId: string | null;
  /** Timeout of one attempt in ms, from the start of the request to the end of the response. */
  readonly timeoutMs: number;
  /** Maximum number of concurrent attempts per gateway. */
  readonly concurrency: number;
  /**
   * Whether to send events in order, one at a time: those of a topic, or those of a topic with the same `partitionkey`. A failing event
   * then blocks its topic or key.
   */
  readonly ordered: boolean | "key";
  /** Limits of the requests if the handler gets several events at once. `undefined` if each event has its own request. */
  readonly batch?: BatchLimits | undefined;
  /** Whether the handler also gets test events. Defaults to false. */
  readonly testEvents?: boolean;
  /** JSON Schema over the CloudEvent. The handler gets only matching events. `undefined` if it gets all events. */
  readonly when?: Definition["when"];
}

export interface HandlerAttempt {
  /** RFC 3339 timestamp. */
  readonly at: string;
  /** `null` when the handler sent no response. */
  readonly status: number | null;
  /**
   * Reason for the failure: `http` for an error status, `rejectedInBatch` and `batchResponse` for the response to a batch, `filterFailed` for
   * a `when`, otherwise the network error code.
   */
  readonly code: string;
  readonly durationMs: number;
}

/** An event that waits to be sent to its handler again. It has a copy of the stream entry, because the stream may be trimmed meanwhile. */
export interface PendingRetry {
  readonly subscriptionId: string;
  readonly topic: string;
  readonly entryId: string;
  /** Fields of the stream entry: names and values in turn. */
  readonly fields: readonly string[];
  /** Time in ms of the first attempt, or of the user's request to send the event again. */
  readonly firstAtMs: number;
  /** Earlier attempts, oldest first. */
  readonly attempts: readonly HandlerAttempt[];
}

/**
 * Returns earlier attempts of an event that is waiting for its next attempt, otherwise `undefined`.
 *
 * @throws UnavailableError
 */
export type FindRetry = (
  event: Pick<PendingRetry, "subscriptionId" | "topic" | "entryId">,
) => Promise<Pick<PendingRetry, "attempts"> | undefined>;

/**
 * Sends an event to its handler again. Calls with the same `demandId` send the event only once.
 *
 * @throws UnavailableError
 */
export type SendAgain = (demandId: string, event: PendingRetry) => Promise<void>;
