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
  const id = messageIdOf(subscriptionId, event);
  return {
    method: "POST",
    url,
    headers: {
      ...binaryHeaders(event.fields),
      ...(traceparent === undefined ? {} : { traceparent }),
      ...signMessage({ id, body, secrets: [secret], atMs }),
    },
    body,
  };
}

/** Returns the id of the message that delivers an event to a subscription. Every attempt has the same id. */
export const messageIdOf = (
  subscriptionId: string,
  { topic, entryId }: Pick<DeliveredEvent, "topic" | "entryId">,
): string => `msg_${subscriptionId}_${entryId}_${topicMark(topic)}`;

/** Returns the headers that sign a message with each of the secrets (Standard Webhooks, v1). */
export function signMessage({
  id,
  body,
  secrets,
  atMs,
}: {
  readonly id: string;
  readonly body: string | Buffer;
  readonly secrets: readonly string[];
  readonly atMs: number;
}): Readonly<Record<"webhook-id" | "webhook-timestamp" | "webhook-signature", string>> {
  const timestamp = String(Math.floor(atMs / 1000));
  const sign = (secret: string): string =>
    createHmac("sha256", signingKey(secret)).update(`${id}.${timestamp}.`).update(body).digest("base64");
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": secrets.map((secret) => `v1,${sign(secret)}`).join(" "),
  };
}

/** Returns a short hash of a topic name. Message ids contain the hash, because entry ids are unique only within a topic. */
export const topicMark = (topic: string): string =>
  createHmac("sha256", "topic").update(topic).digest("base64url").slice(0, 12);

/** Returns whether a text is a Standard Webhooks secret: `whsec_`, then the base64 of 24 to 64 bytes. */
export function isSigningSecret(text: string): boolean {
  if (!SECRET.test(text)) return false;
  const { length } = signingKey(text);
  return length >= 24 && length <= 64;
}

const SECRET = /^whsec_(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

export const signingKey = (secret: string): Buffer => Buffer.from(secret.replace(/^whsec_/, ""), "base64");
