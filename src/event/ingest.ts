import type { ChannelIdentity, ChannelState, CommonSettings } from "./channel.ts";
import type { ItemFailure, Outcome } from "./outcome.ts";
import type { RawRequest, SourcePosition, VerifiedDelivery } from "./received.ts";

/** A channel in force, as far as a channel kind may see it; rules, secrets and verifiers stay behind `ingest`. */
export interface ChannelHandle {
  readonly identity: ChannelIdentity;
  readonly state: ChannelState;
  readonly limits: CommonSettings["limits"];
  /** All of its settings as its kind's schema gave them, secrets included: for the kind to read, and nobody else. */
  readonly settings: unknown;
  /** The methods that its address takes: POST, and those of its handshakes. */
  readonly methods: readonly string[];
  /** The answer to an accepted delivery: its outcome, or nothing but 200. */
  readonly answer: "outcome" | "empty";
  /** False for what no rule can read (415), told before anything of the body is looked at. */
  readonly acceptsContentType: (contentType: string | undefined) => boolean;
}

/** The answer to a handshake. */
export interface HandshakeReply {
  readonly status: 200 | 201 | 202 | 204;
  readonly contentType: "text/plain" | "application/json";
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * The result of a delivery. `accepted`: every event is on its stream and every failure in quarantine, as durable as the
 * gateway promises. `rejected`: the channel refuses invalid items (`onInvalid`, `onNoMatch`); nothing was written. `unverified`:
 * the sender is not who the channel expects; nothing was parsed. `handshake`: it was no delivery.
 */
export type IngestResult =
  | { readonly kind: "accepted"; readonly outcome: Outcome }
  | { readonly kind: "rejected"; readonly failures: readonly ItemFailure[] }
  | { readonly kind: "tooManyItems"; readonly limit: number }
  | { readonly kind: "unverified"; readonly message: string }
  | { readonly kind: "handshake"; readonly reply: HandshakeReply };

/**
 * The one sink of all channel kinds. Answers only when the result is certain, at once where nothing is to be written. Nothing looks at
 * the body of what was accepted any more: its memory may be given back.
 *
 * @throws UnavailableError when Redis or a budget stands in the way: what was appended stays, a retry completes it.
 */
export type Ingest<C extends ChannelHandle = ChannelHandle> = (
  channel: C,
  request: RawRequest,
  options: {
    readonly signal: AbortSignal;
    /** Asked once the sender is known to be who the channel expects: what it throws ends the delivery, and nothing was parsed. */
    readonly admit?: (channel: ChannelHandle) => void;
    /** Told how many items the delivery holds once it is parsed, before anything is written. */
    readonly onItems?: (channel: ChannelHandle, items: number) => void;
  },
) => IngestResult | Promise<IngestResult>;

/**
 * The sink of what the gateway fetched itself: the source is who was called, so nothing is verified, and nobody could be told of
 * a refusal: what fails is quarantined. The position moves in the write that brings the last of the delivery to its place.
 *
 * @throws UnavailableError as `Ingest` does.
 * @throws StaleSourceError (bus) when `position` is no longer its owner's: nothing of what was refused is written.
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

/** Deliveries that go to the bus in one write. */
export interface GatheredWrite {
  /** How many of the deliveries, in their order; not 0. */
  readonly count: number;
  /** How many items they hold; undefined: that is known once they are written. */
  readonly items: number | undefined;
  /** Puts them there, with the position moved past the last of them. Throws as `IngestFetched` does. */
  readonly write: (options: FetchedOptions) => Promise<readonly IngestResult[]>;
}

/**
 * As `IngestFetched`, for many deliveries of a source at once: reads and checks them now, and answers the writes that they need, in
 * their order, as few as may be.
 */
export type GatherFetched<C extends ChannelHandle = ChannelHandle> = (
  channel: C,
  deliveries: readonly VerifiedDelivery[],
) => readonly GatheredWrite[];
