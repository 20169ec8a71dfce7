import { createHash } from "node:crypto";
import { isJsonData, readAttributes } from "./cloud-event.ts";
import { type DeliveredEvent, type HandlerRequest, messageIdOf, signMessage } from "./handler-request.ts";
import { parseJson } from "./parse-json.ts";

/** Limits of the requests to a handler that gets several events at once. */
export interface BatchLimits {
  readonly maxEvents: number;
  /** Maximum size of a request body in bytes. A larger event is sent alone. */
  readonly maxBytes: number;
  /** Maximum time in ms that the first event of a batch waits for others. */
  readonly maxWaitMs: number;
}

/**
 * Builds the request that delivers events to a handler: CloudEvents 1.0 in batched mode, signed like a single event. JSON data is inserted
 * exactly as the sender wrote it.
 *
 * The `webhook-id` depends on the events, so every attempt at the same batch has the same one.
 */
export function createBatchRequest(
  events: readonly DeliveredEvent[],
  options: {
    readonly url: string;
    readonly secret: string;
    readonly subscriptionId: string;
    readonly atMs: number;
  },
): HandlerRequest {
  const { url, secret, subscriptionId, atMs } = options;
  const body = `[${events.map(({ fields }) => formatStructured(fields)).join(",")}]`;
  return {
    method: "POST",
    url,
    headers: {
      "content-type": "application/cloudevents-batch+json; charset=utf-8",
      ...signMessage({ id: batchIdOf(subscriptionId, events), body, secrets: [secret], atMs }),
    },
    body,
  };
}

/** Size of a batch's body in bytes, without those that its events add (`sizeInBatch`). */
export const EMPTY_BATCH_BYTES = 1;

/** Returns the number of bytes that an event adds to the body of a batch: its own and those of a comma. */
export const sizeInBatch = (fields: readonly string[]): number =>
  Buffer.byteLength(formatStructured(fields)) + 1;

function batchIdOf(subscriptionId: string, events: readonly DeliveredEvent[]): string {
  const ids = events.map((event) => messageIdOf(subscriptionId, event));
  const [first = ""] = ids;
  if (ids.length === 1) return first;
  return `msg_${subscriptionId}_${createHash("sha256").update(ids.join("\n")).digest("base64url")}`;
}

/** Formats an event in the JSON format of CloudEvents. */
function formatStructured(fields: readonly string[]): string {
  const { attributes, text } = readAttributes(fields);
  const rest = JSON.stringify(attributes);
  if (text === undefined) return rest;
  const data = isJsonData(attributes.datacontenttype) ? text : JSON.stringify(text);
  return `${rest.slice(0, -1)},"data":${data}}`;
}

/**
 * Returns the events that a 2xx response to a batch lists in `failed`, by source and id or by id alone. An id without a source means all
 * events with this id.
 *
 * @returns `undefined` if `failed` is not a list of events of the batch, or is longer than the batch
 */
export function readRejected(
  body: Buffer,
  events: readonly DeliveredEvent[],
): ReadonlySet<DeliveredEvent> | undefined {
  const failed = readFailed(body);
  if (failed === undefined) return new Set();
  if (!Array.isArray(failed) || failed.length > events.length) return undefined;
  const named = events.map((event) => ({ event, attributes: readAttributes(event.fields).attributes }));
  const rejected = new Set<DeliveredEvent>();
  for (const entry of failed as unknown[]) {
    const { id, source } = (typeof entry === "string" ? { id: entry } : (entry ?? {})) as Record<
      string,
      unknown
    >;
    const found = named.filter(
      ({ attributes }) => attributes.id === id && (source === undefined || attributes.source === source),
    );
    if (found.length === 0) return undefined;
    for (const { event } of found) rejected.add(event);
  }
  return rejected;
}

/** Returns the value of `failed`. Returns `undefined` if the body is not a JSON object with it. */
function readFailed(body: Buffer): unknown {
  try {
    return (parseJson(body.toString()) as { readonly failed?: unknown } | null)?.failed;
  } catch {
    return undefined;
  }
}
