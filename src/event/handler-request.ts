import { createHmac } from "node:crypto";
import { readAttributes } from "./cloud-event.ts";
import { binaryHeaders } from "./typed-event.ts";

/** An event as its entry has it, and where that stands. */
export interface DeliveredEvent {
  readonly topic: string;
  readonly entryId: string;
  /** Name, value, name, value … */
  readonly fields: readonly string[];
}

/** A request as it goes out; names of headers in lower case. */
export interface HandlerRequest {
  readonly method: "POST";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

/**
 * The request that hands an event to a handler: CloudEvents 1.0 in binary mode with the data as it was received, signed as
 * Standard Webhooks says (v1). Its `webhook-id` is the same at each attempt, and unlike that of any other event.
 *
 * @param options.secret `whsec_` and base64, or base64 alone
 * @param options.atMs when it is sent: receivers refuse old signatures
 */
export function createHandlerRequest(
  event: DeliveredEvent,
  options: {
    readonly url: string;
    readonly secret: string;
    readonly subscriptionId: string;
    readonly atMs: number;
  },
): HandlerRequest {
  const { secret, subscriptionId, atMs, url } = options;
  const { attributes, text = "" } = readAttributes(event.fields);
  const { data_base64: base64, traceparent } = attributes;
  const body = base64 === undefined ? text : Buffer.from(base64, "base64");
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
      ...binaryHeaders(event.fields),
      ...(traceparent === undefined ? {} : { traceparent }),
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
