import { createHmac } from "node:crypto";
import { readAttributes } from "./cloud-event.ts";
import { binaryHeaders } from "./typed-event.ts";

export interface DeliveredEvent {
  readonly topic: string;
  readonly entryId: string;
  /** Fields of the stream entry: names and values in turn. */
  readonly fields: readonly string[];
}

/** An HTTP request to a handler. All header names are in lower case. */
export interface HandlerRequest {
  readonly method: "POST";
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Buffer;
}

/**
 * Builds the request that delivers an event to a handler: CloudEvents 1.0 in binary mode, with the data unchanged, signed according
 * to Standard Webhooks (v1). The `webhook-id` is unique per event and the same for every attempt.
 *
 * @param options.secret base64, with or without the `whsec_` prefix
 * @param options.atMs time of sending; receivers reject old signatures
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

/** Returns a short hash of a topic name. Message ids contain the hash, because entry ids are unique only within a topic. */
export const topicMark = (topic: string): string =>
  createHmac("sha256", "topic").update(topic).digest("base64url").slice(0, 12);

export const signingKey = (secret: string): Buffer => Buffer.from(secret.replace(/^whsec_/, ""), "base64");
