import { createHash } from "node:crypto";
import type { ChannelIdentity } from "../../event/channel.ts";
import { type ItemFailure, QUARANTINE_REASONS, type QuarantineReason } from "../../event/outcome.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import type { NewId } from "../../lib/ids.ts";
import { quarantineBudgetKey } from "../keys.ts";

export interface QuarantineItem {
  readonly failure: ItemFailure;
  /**
   * `all`: kept for seven days, refused when the budget is full. `newest`: older ones give way and are
   * counted (items that match no definition, where the channel says `keepLast`).
   */
  readonly keep: "all" | "newest";
}

/** Failed items of one delivery, which is stored once for all of them. */
export interface QuarantineWrite {
  readonly delivery: VerifiedDelivery;
  readonly items: readonly QuarantineItem[];
}

/** One item that could not be published. The same item again is the same record, counted. */
export interface QuarantineRecord {
  readonly id: string;
  readonly channelNumber: number;
  readonly organizationId: string;
  readonly appId: string;
  readonly channelUid: string;
  /** Null: the delivery as a whole. */
  readonly item: number | null;
  readonly reason: QuarantineReason;
  readonly path?: string;
  readonly detail: string;
  readonly definitions: readonly string[];
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

export interface QuarantinedItem {
  readonly record: QuarantineRecord;
  /** As it arrived, byte for byte. */
  readonly delivery: VerifiedDelivery;
}

export interface QuarantineLimits {
  /** Of items that give way to newer ones, a channel and reason. */
  readonly newestItems: number;
  readonly newestBytes: number;
  /** Of all others. */
  readonly channelBytes: number;
  /** Of all there are. */
  readonly organizationBytes: number;
  readonly keepMs: number;
}

const MIB = 1024 * 1024;

export const QUARANTINE_LIMITS: QuarantineLimits = {
  newestItems: 1000,
  newestBytes: 16 * MIB,
  channelBytes: 64 * MIB,
  organizationBytes: 512 * MIB,
  keepMs: 7 * 24 * 3600 * 1000,
};

export interface EncodedQuarantine {
  readonly budgetKey: string;
  /** As publish.lua reads them, after the budget's place. */
  readonly args: readonly (string | Buffer)[];
  readonly bytes: number;
}

/**
 * Headers by which hops differ, not deliveries: a sender's retry is the same delivery, and is counted, not
 * kept twice.
 */
const HOP_HEADERS = new Set([
  "accept",
  "accept-encoding",
  "cdn-loop",
  "connection",
  "content-length",
  "date",
  "forwarded",
  "host",
  "idempotency-key",
  "keep-alive",
  "traceparent",
  "tracestate",
  "transfer-encoding",
  "user-agent",
  "via",
  "x-request-id",
]);
const HOP_PREFIXES = ["x-forwarded-", "x-b3-", "x-amzn-", "cf-"];

export const encodeLimits = (limits: QuarantineLimits): string =>
  `${limits.newestItems} ${limits.newestBytes} ${limits.channelBytes} ${limits.organizationBytes} ${limits.keepMs} ${QUARANTINE_REASONS.join(" ")}`;

/** @param organizationBytes what the organization may hold, where that is not what all may */
export function encodeQuarantine(
  channel: ChannelIdentity,
  { delivery, items }: QuarantineWrite,
  newId: NewId,
  organizationBytes?: number,
): EncodedQuarantine {
  const { body, bodyHash: _, ...meta } = delivery;
  const metaText = JSON.stringify(meta);
  const args: (string | Buffer)[] = [
    String(channel.number),
    deliveryDigest(delivery),
    metaText,
    // As it is: for the memory of a few large texts V8 would look through the whole heap.
    body,
    organizationBytes === undefined ? String(items.length) : `${items.length} ${organizationBytes}`,
  ];
  // Sorted, so that items of one delivery are listed, and run again, in their order.
  const ids = items.map(newId).sort();
  for (const [i, { failure, keep }] of items.entries()) {
    const { item, reason, path, detail, definitions } = failure;
    const record = JSON.stringify({
      channelNumber: channel.number,
      organizationId: channel.organizationId,
      appId: channel.appId,
      channelUid: channel.uid,
      item,
      reason,
      path,
      detail,
      definitions,
    });
    args.push(ids[i] ?? newId(), keep, `${item ?? "whole"}.${reason}`, reason, record);
  }
  return {
    budgetKey: quarantineBudgetKey(channel.organizationId),
    args,
    bytes: body.length + metaText.length + 512 * items.length,
  };
}

/** 128 bits over the parts that a sender's retry repeats, as 22 base64url characters. */
function deliveryDigest({ method, headers, query, body, deliveryId }: VerifiedDelivery): string {
  const comparedHeaders = Object.entries(headers)
    .filter(([name]) => !HOP_HEADERS.has(name) && !HOP_PREFIXES.some((prefix) => name.startsWith(prefix)))
    .sort(([a], [b]) => (a < b ? -1 : 1));
  return createHash("sha256")
    .update(JSON.stringify([method, comparedHeaders, Object.entries(query), deliveryId]))
    .update("\0")
    .update(body)
    .digest("base64url")
    .slice(0, 22);
}
