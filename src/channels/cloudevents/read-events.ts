import { isUtf8 } from "node:buffer";
import { mergeContentTypes } from "../../event/content-type.ts";
import type { VerifiedDelivery } from "../../event/received.ts";
import type { Values } from "../../event/values.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { type Body, parseBodyFormat, readBody } from "../../normalize/body/bodies.ts";
import type { JsonText } from "../../normalize/body/payload-slice.ts";
import type { Fault } from "../../normalize/fault.ts";
import {
  type BrokenItem,
  type CloudEvent,
  type DeliveryItems,
  type Item,
  MAX_ITEMS,
} from "../../normalize/item.ts";
import { createCloudEvent, invalid, REQUIRED } from "./attributes.ts";
import { readJsonEvent } from "./json-format.ts";

/** Content modes of CloudEvents 1.0.2, HTTP binding, section 3. */
type ContentMode = "binary" | "structured" | "batched";

const MEDIA_TYPE_PREFIX = "application/cloudevents";
const HEADER_PREFIX = "ce-";

/**
 * Returns false for event formats that Inlet does not support. Section 3 of the HTTP binding forbids reading such a format as plain data.
 */
export function acceptsContentType(header: string | undefined): boolean {
  const contentType = mergeContentTypes(header);
  const kind = parseBodyFormat(contentType)?.kind;
  return parseContentMode(contentType) !== undefined && kind !== undefined && kind !== "multipart";
}

/** Reads the events of a request. An invalid event in a batch does not affect the other events. */
export function readEvents(delivery: VerifiedDelivery): Result<DeliveryItems, Fault> {
  const contentType = mergeContentTypes(delivery.headers["content-type"]) || undefined;
  const mode = parseContentMode(contentType);
  if (mode === undefined) return invalid(undefined, `the event format ${contentType} is not supported`);
  const body =
    contentType === undefined ? readUndeclared(delivery.body) : readBody(delivery.body, contentType);
  if (!body.ok) return body;
  switch (mode) {
    case "binary": {
      const event = readBinary(delivery, contentType);
      return event.ok ? ok(toSingleItem(body.value, event.value, body.value.value, body.value.json)) : event;
    }
    case "structured": {
      const event = readStructured(delivery, body.value);
      return event.ok ? ok(toSingleItem(body.value, event.value)) : event;
    }
    case "batched":
      return readBatch(delivery, body.value);
    default:
      return mode satisfies never;
  }
}

/** Reads data without a content type, which can have any format: JSON if possible, else text, else bytes. */
function readUndeclared(bytes: Buffer): Result<Body, Fault> {
  const json = readBody(bytes);
  if (json.ok) return json;
  return readBody(bytes, isUtf8(bytes) && !bytes.includes(0) ? "text/plain" : "application/octet-stream");
}

function parseContentMode(contentType: string | undefined): ContentMode | undefined {
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (!type.startsWith(MEDIA_TYPE_PREFIX)) return "binary";
  if (type === `${MEDIA_TYPE_PREFIX}+json`) return "structured";
  return type === `${MEDIA_TYPE_PREFIX}-batch+json` ? "batched" : undefined;
}

function readBinary({ headers, body }: VerifiedDelivery, contentType: string | undefined) {
  if (`${HEADER_PREFIX}datacontenttype` in headers) {
    return invalid("datacontenttype", "must be sent as Content-Type, not in a header of its own");
  }
  const pairs = readHeaders(headers);
  if (!pairs.ok) return pairs;
  const missing = REQUIRED.filter((name) => !(HEADER_PREFIX + name in headers));
  if (missing.length > 0) return invalid(missing[0], describeMissing(missing));
  if (contentType !== undefined) pairs.value.push(["datacontenttype", contentType]);
  return createCloudEvent(pairs.value, { kind: body.length === 0 ? "none" : "body" });
}

/** Explains which headers are missing. Most senders of such a request meant another mode. */
function describeMissing(missing: readonly string[]): string {
  const names = missing.map((name) => HEADER_PREFIX + name).join(", ");
  return `is missing: an event in headers needs ${names}. Send an event in the body with the Content-Type ${MEDIA_TYPE_PREFIX}+json, and an array of events with ${MEDIA_TYPE_PREFIX}-batch+json`;
}

/** Reads an event in structured mode. A header that repeats an attribute must have the same value (HTTP binding, section 3.2.3). */
function readStructured({ headers }: VerifiedDelivery, { json }: Body): Result<CloudEvent, Fault> {
  if (json === undefined) return invalid(undefined, "an event must be a JSON object");
  const event = readJsonEvent(json);
  const repeated = readHeaders(headers);
  if (!event.ok) return event;
  if (!repeated.ok) return repeated;
  const { id, source, type, attributes } = event.value;
  const bodyAttributes = new Map([
    ...attributes,
    ["specversion", "1.0"],
    ["id", id],
    ["source", source],
    ["type", type],
  ]);
  for (const [name, value] of repeated.value) {
    if (bodyAttributes.get(name) !== value) return invalid(name, "differs between the event and its header");
  }
  return event;
}

function readBatch({ headers }: VerifiedDelivery, body: Body): Result<DeliveryItems, Fault> {
  const { json } = body;
  if (json === undefined || !Array.isArray(json.value))
    return invalid(undefined, "a batch must be a JSON array");
  const header = Object.keys(headers).find((name) => name.startsWith(HEADER_PREFIX));
  if (header !== undefined) return invalid(header, "must not be sent with a batch");
  if (json.value.length > MAX_ITEMS) return ok({ body, split: { kind: "tooMany", limit: MAX_ITEMS } });
  const items = json.elements().map((element, index): Item | BrokenItem => {
    const event = readJsonEvent(element);
    return event.ok ? toItem(event.value, index, false) : { index, fault: event.error, text: element.text };
  });
  return ok({ body, split: { kind: "items", items } });
}

function toSingleItem(body: Body, event: CloudEvent, value?: unknown, json?: JsonText): DeliveryItems {
  const item =
    event.data.kind === "body" ? { index: 0, value, json, isBody: true, event } : toItem(event, 0, true);
  return { body, split: { kind: "items", items: [item] } };
}

function toItem(event: CloudEvent, index: number, isBody: boolean): Item {
  const { data } = event;
  const json = data.kind === "json" ? data.json : undefined;
  return { index, value: data.kind === "text" ? data.text : json?.value, json, isBody, event };
}

function readHeaders(headers: Values): Result<[string, string][], Fault> {
  const pairs: [string, string][] = [];
  for (const [header, value] of Object.entries(headers)) {
    if (!header.startsWith(HEADER_PREFIX)) continue;
    const name = header.slice(HEADER_PREFIX.length);
    if (typeof value !== "string") return invalid(name, "must not appear twice");
    const decoded = decodeHeader(value);
    if (!decoded.ok) return invalid(name, decoded.error);
    pairs.push([name, decoded.value]);
  }
  return ok(pairs);
}

/**
 * Decodes a header value (HTTP binding, section 3.1.3.2). Removes quotes and backslashes (RFC 7230, section 3.2.6), then percent-decodes
 * once.
 */
function decodeHeader(value: string): Result<string, string> {
  if (!/^[\x20-\x7e\t]*$/.test(value))
    return err("must be percent-encoded: it contains characters outside of ASCII");
  const text = /^".*"$/.test(value) && value.length > 1 ? value.slice(1, -1).replace(/\\(.)/g, "$1") : value;
  if (!text.includes("%")) return ok(text);
  try {
    return ok(decodeURIComponent(text));
  } catch {
    return err("is not valid percent-encoded UTF-8");
  }
}
