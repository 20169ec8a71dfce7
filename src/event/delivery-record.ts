import type { ExplainedItem } from "./explained.ts";
import type { EventReceipt, Outcome, QuarantineReceipt } from "./outcome.ts";
import type { Values } from "./values.ts";

/**
 * What a delivery came to, as its record tells. `quarantined`: one of its items at least is there. `refused`: its sender was
 * answered 4xx. `failed`: 5xx, it is not certain what became of it. `empty`: it had no item.
 */
export const DELIVERY_STATUSES = [
  "published",
  "duplicate",
  "quarantined",
  "refused",
  "failed",
  "handshake",
  "empty",
] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

/**
 * How its sender was known. `unproved`: the channel tries its settings out, and they would have refused it. `none`: anyone who knows
 * the address is believed. `fetched`: the gateway asked for it. `unknown`: it was refused before anybody looked.
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
  /** An id that the signature covers. */
  readonly deliveryId: string | null;
}

/** One delivery as it is kept for people to look at, without secrets. */
export interface DeliveryRecord {
  readonly id: string;
  readonly channelNumber: number;
  readonly channelUid: string;
  readonly appId: string;
  readonly organizationId: string;
  readonly requestId: string | null;
  /** Where it came from; null: it was fetched. */
  readonly clientAddress: string | null;
  readonly method: string;
  readonly headers: Values;
  readonly query: Values;
  readonly receivedAtMs: number;
  /** From its arrival until it was answered, or written. */
  readonly durationMs: number;
  readonly status: DeliveryStatus;
  /** Of the answer; null: nobody was answered. */
  readonly httpStatus: number | null;
  /** Why it was refused, or failed; for the operator. */
  readonly reason: string | null;
  readonly verification: RecordedVerification;
  readonly outcome: Pick<Outcome, "received" | "published" | "duplicates" | "quarantined"> & {
    /** The first of them. */
    readonly events: readonly EventReceipt[];
    readonly quarantine: readonly QuarantineReceipt[];
  };
  /** Of the body as received; null: it was not read, or is not told. */
  readonly bodyBytes: number | null;
  /** False where it was refused, or is too large to be kept. */
  readonly hasBody: boolean;
}

/** What the paths yielded of one item, by the definitions of then. */
export type RecordedItem = Pick<ExplainedItem, "item" | "failures" | "definitions" | "closest">;

/** The record with what is shown of it alone. */
export interface WholeDeliveryRecord {
  readonly record: DeliveryRecord;
  /** Null where it was not kept. */
  readonly body: Buffer | null;
  readonly items: readonly RecordedItem[];
}
