import { createHmac } from "node:crypto";
import type { OutboundRequest } from "../net/outbound.ts";

/** An event as its entry has it, and where that stands. */
export interface DeliveredEvent {
  readonly topic: string;
  readonly entryId: string;
  /** Name, value, name, value … */
  readonly fields: readonly string[];
}

/**
 * The request that hands an event to a handler: CloudEvents 1.0.2 in binary mode (HTTP binding, section 3.1), signed as
 * Standard Webhooks says (v1). Its `webhook-id` is the same at each attempt, and unlike that of any other event.
 *
 * @param options.secret `whsec_` and base64, or base64 alone
 * @param options.atMs when it is sent: receivers refuse what was signed long ago
 */
export function createHandlerRequest(
  event: DeliveredEvent,
  options: {
    readonly url: string;
    readonly secret: string;
    readonly subscriptionId: string;
    readonly atMs: number;
  },
): OutboundRequest {
  const { secret, subscriptionId, atMs, url } = options;
  const headers: Record<string, string> = {};
  let body: string | Buffer = "";
  for (let at = 0; at + 1 < event.fields.length; at += 2) {
    const name = event.fields[at] ?? "";
    const value = event.fields[at + 1] ?? "";
    if (name === "data") body = value;
    else if (name === "data_base64") body = Buffer.from(value, "base64");
    else if (name === "datacontenttype") headers["content-type"] = value;
    else headers[`ce-${name}`] = encodeHeader(value);
    if (name === "traceparent") headers.traceparent = value;
  }
  const id = `msg_${subscriptionId}_${event.entryId}_${topicMark(event.topic)}`;
  const timestamp = String(Math.floor(atMs / 1000));
  const signature = createHmac("sha256", signingKey(secret))
    .update(`${id}.${timestamp}.`)
    .update(body)
    .digest("base64");
  return {
    method: "POST",
    url,
    headers: {
      ...headers,
      "webhook-id": id,
      "webhook-timestamp": timestamp,
      "webhook-signature": `v1,${signature}`,
    },
    body,
  };
}

/** Entries of two topics may have one id. */
export const topicMark = (topic: string): string =>
  createHmac("sha256", "topic").update(topic).digest("base64url").slice(0, 12);

export const signingKey = (secret: string): Buffer => Buffer.from(secret.replace(/^whsec_/, ""), "base64");

/** HTTP binding, section 3.1.3.2: all but printable ASCII, and blanks, quotes and percent signs, by their UTF-8 bytes. */
function encodeHeader(value: string): string {
  return value
    .toWellFormed()
    .replace(/[^\x21\x23\x24\x26-\x7e]/gu, (character) =>
      [...Buffer.from(character)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
        .join(""),
    );
}
