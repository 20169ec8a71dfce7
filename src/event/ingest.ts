import type { ChannelConfig, ChannelIdentity, ChannelState } from "./channel.ts";
import type { ItemFailure, Outcome } from "./outcome.ts";
import type { SourcePosition, VerifiedDelivery } from "./received.ts";

/** The part of an active channel that a channel kind may see. Rules, secrets and verifiers are hidden from the kind. */
export interface ChannelHandle {
  readonly identity: ChannelIdentity;
  readonly state: ChannelState;
  readonly limits: ChannelConfig["limits"];
  /** The whole config as parsed by the kind's schema, including secrets. Only the channel kind may read it. */
  readonly kindConfig: unknown;
  /** HTTP methods that the channel's address accepts: POST and the methods of the channel's handshakes. */
  readonly methods: readonly string[];
  /** Body of the response to an accepted delivery: the delivery's outcome, or an empty body. */
  readonly answer: "outcome" | "empty";
  /** Returns false for a content type that the channel cannot read. The sender gets 415 before the body is read. */
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
  | { readonly kind: "accepted"; readonly outcome: Outcome }
  | { readonly kind: "rejected"; readonly failures: readonly ItemFailure[] }
  | { readonly kind: "tooManyItems"; readonly limit: number }
  | { readonly kind: "unverified"; readonly message: string }
  | { readonly kind: "handshake"; readonly reply: HandshakeReply };

/**
 * Ingests a delivery that the gateway fetched itself. It needs no verification, because the gateway chose the server it called.
 * Failed items always go to quarantine, because no sender waits for a rejection. The last write also moves the source's position.
 *
 * @throws UnavailableError when Redis is unavailable or a budget is exhausted. Events appended so far remain, and a retry completes
 * the delivery.
 * @throws StaleSourceError (bus) when another worker owns the source. The rejected write changes no data.
 */
export type IngestFetched<C extends ChannelHandle = ChannelHandle> = (
  channel: C,
  delivery: VerifiedDelivery,
  options: FetchedOptions,
) => Promise<IngestResult>;

export interface FetchedOptions {
  readonly signal: AbortSignal;
  readonly position: SourcePosition;
}

export interface GatheredWrite {
  /** Number of consecutive deliveries in this write, at least 1. */
  readonly count: number;
  /** Total number of items. `undefined` when it is known only after the write. */
  readonly items: number | undefined;
  /** Publishes the deliveries and moves the position past the last one. Throws the same errors as `IngestFetched`. */
  readonly write: (options: FetchedOptions) => Promise<readonly IngestResult[]>;
}

/**
 * Batch variant of `IngestFetched`. Parses and validates all deliveries immediately. Returns the writes that publish them in order, as few
 * as possible.
 */
export type GatherFetched<C extends ChannelHandle = ChannelHandle> = (
  channel: C,
  deliveries: readonly VerifiedDelivery[],
) => readonly GatheredWrite[];
