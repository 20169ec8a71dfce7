import type { ExplainedItem } from "./explained.ts";
import type { EventReceipt, Outcome, QuarantineReceipt } from "./outcome.ts";
import type { Values } from "./values.ts";

/**
 * Final status of a recorded delivery.
 *
 * - `recovered` means that the channel missed the delivery, and a poll found its events.
 * - `ignored` means that all items were excluded by the `when` of each definition, or by `onNoMatch: ignore`.
 * - `quarantined` means that at least one item is in quarantine.
 * - `refused` means that the response was 4xx.
 * - `failed` means that the response was 5xx and the result is uncertain.
 * - `empty` means that the delivery contained no items.
 * - `woke` means that the delivery had no events, and has woken polling channels.
 */
export const DELIVERY_STATUSES = [
  "published",
  "recovered",
  "duplicate",
  "ignored",
  "quarantined",
  "refused",
  "failed",
  "handshake",
  "empty",
  "woke",
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/**
 * Result of verifying the sender.
 *
 * - `unproved` means that verification failed, but the channel is in shadow mode and accepted the delivery.
 * - `none` means that the channel accepts any sender that knows its address.
 * - `fetched` means that the gateway fetched the delivery itself.
 * - `unknown` means that the request was rejected before verification.
 */
export const VERIFICATION_RESULTS = [
  "verified",
  "unproved",
  "none",
  "fetched",
  "refused",
  "unknown",
] as const;

export interface RecordedVerification {
  readonly result: (typeof VERIFICATION_RESULTS)[number];
  readonly scheme: string;
  readonly preset: string | null;
  /** Delivery id covered by the signature. */
  readonly deliveryId: string | null;
}

/** A record of a delivery for people to inspect. It contains no secrets. */
export interface DeliveryRecord {
  readonly id: string;
  readonly channelNumber: number;
  readonly channelUid: string;
  readonly appId: string;
  readonly organizationId: string;
  readonly requestId: string | null;
  /** `null` if the delivery is not sampled. Missing in records that an earlier version has written. */
  readonly traceId?: string | null;
  /** IP address of the sender. `null` if the gateway fetched the delivery. */
  readonly clientAddress: string | null;
  readonly method: string;
  readonly headers: Values;
  readonly query: Values;
  readonly receivedAtMs: number;
  /** Time in ms from arrival to the HTTP response, or to the write if the gateway fetched the delivery. */
  readonly durationMs: number;
  readonly status: DeliveryStatus;
  /** Status of the HTTP response. `null` if the gateway fetched the delivery. */
  readonly httpStatus: number | null;
  readonly reason: string | null;
  readonly verification: RecordedVerification;
  readonly outcome: Pick<Outcome, "received" | "published" | "duplicates" | "quarantined" | "woken"> & {
    /** Missing in records that an earlier version has written. */
    readonly ignored?: number;
    /** Receipts of the first few events only. */
    readonly events: readonly EventReceipt[];
    readonly quarantine: readonly QuarantineReceipt[];
  };
  /** Size of the received body in bytes. `null` if the body was not read or its size is withheld. */
  readonly bodyBytes: number | null;
  /** Whether the body is stored. False if the delivery was rejected or its body is too large. */
  readonly hasBody: boolean;
}

/** Results of applying the event definitions to one item. These are the definitions at the time of the delivery. */
export type RecordedItem = Pick<ExplainedItem, "item" | "failures" | "definitions" | "closest">;

export interface WholeDeliveryRecord {
  readonly record: DeliveryRecord;
  /** `null` when the body was not stored. */
  readonly body: Buffer | null;
  readonly items: readonly RecordedItem[];
}
