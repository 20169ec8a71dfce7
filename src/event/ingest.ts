import type { Answer } from "./answer.ts";
import type { ChannelConfig, ChannelIdentity, ChannelState } from "./channel.ts";
import type { ItemFailure, Outcome } from "./outcome.ts";
import type { SourcePosition, VerifiedDelivery } from "./received.ts";

/** The view of a channel for the code of its channel kind. Event definitions, secrets and verifiers are hidden. */
export interface ChannelHandle {
  readonly identity: ChannelIdentity;
  readonly state: ChannelState;
  readonly limits: ChannelConfig["limits"];
  /** The whole config, parsed, including secrets. Only the code of the channel kind may read it. */
  readonly kindConfig: unknown;
  /** HTTP methods that the channel's address accepts: those of deliveries and those of its handshakes. */
  readonly methods: readonly string[];
  /** Content of the response to an accepted delivery: a JSON report of the outcome, nothing, or a fixed text. */
  readonly answer: Answer;
  /** Returns false if the channel cannot read this content type. The sender then gets status 415 before the body is read. */
  readonly acceptsContentType: (contentType: string | undefined) => boolean;
}

export interface HandshakeReply {
  readonly status: 200 | 201 | 202 | 204;
  readonly contentType: "text/plain" | "application/json";
  /** Header names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * Result of ingesting a delivery.
 *
 * - `accepted` means that all events are published and all failures are in quarantine, with the configured durability.
 * - `rejected` means that the channel rejects invalid items (`onInvalid`, `onNoMatch`). Inlet wrote no item of the delivery.
 * - `unverified` means that verification failed and the body was not parsed.
 * - `handshake` means that the request was a handshake and not a delivery.
 */
export type IngestResult =
  | {
      readonly kind: "accepted";
      readonly outcome: Outcome;
      /** Whether the outcome was counted already, because the delivery was first stored and then published. */
      readonly isCounted?: true;
    }
  | { readonly kind: "rejected"; readonly failures: readonly ItemFailure[] }
  | { readonly kind: "tooManyItems"; readonly limit: number }
  | { readonly kind: "unverified"; readonly message: string }
  | { readonly kind: "handshake"; readonly reply: HandshakeReply };

export interface FetchedOptions {
  readonly signal: AbortSignal;
  readonly position: SourcePosition;
}

export interface GatheredWrite {
  /** Number of consecutive deliveries that this write covers, at least 1. */
  readonly count: number;
  /** Total number of items in these deliveries. `undefined` if it is known only after the write. */
  readonly items: number | undefined;
  /**
   * Publishes the deliveries and stores the position after the last one.
   *
   * @throws UnavailableError when Redis is unavailable or a budget is exhausted. Events appended so far remain, and a retry completes
   * the deliveries.
   * @throws StaleSourceError (bus) when another worker owns the source. The rejected write changes no data.
   */
  readonly write: (options: FetchedOptions) => Promise<readonly IngestResult[]>;
}

/**
 * Parses and validates deliveries that the gateway fetched itself. They need no verification, because the gateway chose the server it
 * called. Failed items always go to quarantine, because no sender waits for a rejection. Returns as few writes as possible, which publish
 * the deliveries in order.
 */
export type GatherFetched<C extends ChannelHandle = ChannelHandle> = (
  channel: C,
  deliveries: readonly VerifiedDelivery[],
) => readonly GatheredWrite[];
