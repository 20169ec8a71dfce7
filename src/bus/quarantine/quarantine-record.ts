import { createHash } from "node:crypto";
import type { ChannelIdentity } from "../../event/channel.ts";
import { type ItemFailure, QUARANTINE_REASONS, type QuarantineReason } from "../../event/outcome.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import type { NewId } from "../../lib/ids.ts";
import { quarantineBudgetKey } from "../keys.ts";

export interface QuarantineItem {
  readonly failure: ItemFailure;
  /**
   * Storage rule: `all` keeps the item for seven days, or rejects the delivery if the quarantine is full. `newest` deletes the
   * oldest items instead.
   *
   * `newest` applies to items that match no event definition, if the channel has `keepLast`.
   */
  readonly keep: "all" | "newest";
}

/** Failed items of one delivery. The delivery itself is stored only once. */
export interface QuarantineWrite {
  readonly delivery: VerifiedDelivery;
  readonly items: readonly QuarantineItem[];
  /** Id of the record whose redrive failed. A redrive does not count as an arrival. `undefined` for an arrived delivery. */
  readonly redriven?: string | undefined;
  /** Route key for which an intake holds the items. `undefined` for other items. */
  readonly routeKey?: string | undefined;
}

/** An item that could not be published. If the same item arrives again, only `count` and `lastAtMs` change. A redrive changes neither. */
export interface QuarantineRecord {
  readonly id: string;
  readonly channelNumber: number;
  readonly organizationId: string;
  readonly appId: string;
  readonly channelUid: string;
  /** Index of the item in its delivery. `null` if the delivery as a whole failed. */
  readonly item: number | null;
  readonly reason: QuarantineReason;
  readonly path?: string;
  readonly detail: string;
  readonly definitions: readonly string[];
  /** Route key for which an intake holds the item. */
  readonly routeKey?: string;
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

export interface QuarantinedItem {
  readonly record: QuarantineRecord;
  readonly delivery: VerifiedDelivery;
}

export interface QuarantineLimits {
  /** Maximum number of items in the mode `newest`, per channel and reason. Newer items replace older ones. */
  readonly newestItems: number;
  /** Maximum bytes of items in the mode `newest`, per channel and reason. */
  readonly newestBytes: number;
  /** Maximum bytes of a channel's items in the mode `all`, which never deletes an item for a newer one. */
  readonly channelBytes: number;
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
  /** Arguments for the publish script, after the index of the budget key. */
  readonly args: readonly (string | Buffer)[];
  readonly bytes: number;
}

/** Headers that may differ when a sender retries a delivery. The digest ignores them, so that a retry is counted but not stored again. */
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

/** @param organizationBytes maximum bytes for this organization, or `undefined` for the general limit */
export function encodeQuarantine(
  channel: ChannelIdentity,
  { delivery, items, redriven = "", routeKey }: QuarantineWrite,
  newId: NewId,
  organizationBytes?: number,
): EncodedQuarantine {
  const { body, bodyHash: _, ...meta } = delivery;
  const metaText = JSON.stringify(meta);
  const held = routeKey === undefined ? "" : hashRouteKey(routeKey);
  const args: (string | Buffer)[] = [
    String(channel.number),
    deliveryDigest(delivery),
    metaText,
    // Keep the body as a Buffer, because a few large strings would make V8 collect the whole heap.
    body,
    `${items.length} ${organizationBytes ?? ""} ${held} ${redriven}`,
  ];
  // Sort the ids, so that the items of a delivery are listed and processed again in their original order.
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
      routeKey,
    });
    // With its route key, because a delivery can have another one after a change of the intake.
    const field = `${item ?? "whole"}.${reason}${held && `.${held}`}`;
    args.push(ids[i] ?? newId(), keep, field, reason, record);
  }
  return {
    budgetKey: quarantineBudgetKey(channel.organizationId),
    args,
    bytes: body.length + metaText.length + 512 * items.length,
  };
}

/** Hash of a route key in the names of Redis keys, which senders must not choose. */
export const hashRouteKey = (routeKey: string): string =>
  createHash("sha256").update(routeKey).digest("base64url").slice(0, 22);

/** Returns a 128-bit digest (22 base64url characters) of the parts of a delivery that stay the same when the sender retries it. */
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
