import { parseJson } from "./parse-json.ts";
/**
 * A CloudEvents 1.0 event read from a topic. It has the shape of `CloudEventV1` from the `cloudevents` package.
 *
 * Optional attributes are missing when the sender did not set them. The object is frozen.
 *
 * @typeParam T type of `data`. It is not checked at run time.
 * @example
 * ```ts
 * const handler = (event: ConsumedEvent<{ ref: string }>) => console.log(event.type, event.data?.ref);
 * ```
 */
export interface ConsumedEvent<T = unknown> {
  readonly specversion: "1.0";
  /** Unique per `source`. */
  readonly id: string;
  /** URI reference that identifies the system in which the event happened. */
  readonly source: string;
  /** Event type, for example `order.created`. */
  readonly type: string;
  /** RFC 3339 timestamp, exactly as the sender wrote it. */
  readonly time?: string;
  readonly datacontenttype?: string;
  readonly subject?: string;
  readonly dataschema?: string;
  /** Parsed JSON, a string for other text, or a `Buffer` for binary data. Missing if the event has no data. */
  readonly data?: T;
  /** Binary data in base64. `data` contains the same bytes. */
  readonly data_base64?: string;
  /** W3C Trace Context of the delivery. */
  readonly traceparent?: string;
  /** Key whose events can be handled in order, for example a customer id. */
  readonly partitionkey?: string;
  readonly [extension: string]: unknown;
}

/** Extension attribute that marks a test event. */
export const TEST_EXTENSION = "inlettest";

/** Extension attribute that tells how an event reached Inlet if not through its channel. The only value is `poll`. */
export const VIA_EXTENSION = "inletvia";

/**
 * Extension attribute of a traced event, with the context of the span that published it. Unlike the attribute `traceparent`, it never comes from
 * the sender, so readers can base their sampling on it.
 */
export const TRACE_EXTENSION = "inlettrace";

/** Extension attribute with the key of an event (CloudEvents extension "partitioning"). */
export const KEY_EXTENSION = "partitionkey";

/** Returns true if a stream entry is a test event. `fields` contains names and values in turn. */
export const isTestEvent = (fields: readonly string[]): boolean => hasExtension(fields, TEST_EXTENSION);

/** Returns true if a poll has recovered the event of a stream entry. `fields` contains names and values in turn. */
export const isRecovered = (fields: readonly string[]): boolean => hasExtension(fields, VIA_EXTENSION);

function hasExtension(fields: readonly string[], name: string): boolean {
  // Searches from the end, because extension attributes come last.
  for (let at = fields.length - 2; at >= 0; at -= 2) if (fields[at] === name) return true;
  return false;
}

/**
 * Splits a stream entry into event attributes and the text of `data`.
 *
 * @param fields names and values in turn
 * @returns `text` is `undefined` if the event has no text data
 */
export function readAttributes(fields: readonly string[]): {
  readonly attributes: Record<string, string>;
  readonly text: string | undefined;
} {
  const attributes: Record<string, string> = {};
  let text: string | undefined;
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = fields[at] ?? "";
    const value = fields[at + 1] ?? "";
    if (name === "data") text = value;
    else attributes[name] = value;
  }
  return { attributes, text };
}

/** Parses a stream entry into an event. JSON data is parsed, and base64 data is decoded to a `Buffer`. */
export function readEvent<T>(fields: readonly string[]): {
  readonly event: ConsumedEvent<T>;
  readonly text: string | undefined;
} {
  if (hasUsualNames(fields)) return readUsual(fields);
  const { attributes, text } = readAttributes(fields);
  const { data_base64: base64, datacontenttype } = attributes;
  let data: unknown;
  if (base64 !== undefined) data = Buffer.from(base64, "base64");
  else if (text !== undefined) data = isJsonData(datacontenttype) ? parseJson(text) : text;
  const event: Record<string, unknown> = attributes;
  if (data !== undefined) event.data = data;
  return { event: Object.freeze(event) as unknown as ConsumedEvent<T>, text };
}

/** Returns true if a stream entry has exactly the usual attributes in the usual order, so that it can be read without a search. */
export function hasUsualNames(fields: readonly string[]): boolean {
  return (
    fields.length === 14 &&
    fields[0] === "specversion" &&
    fields[1] === "1.0" &&
    fields[2] === "id" &&
    fields[4] === "source" &&
    fields[6] === "type" &&
    fields[8] === "time" &&
    fields[10] === "datacontenttype" &&
    fields[12] === "data"
  );
}

/** Parses an event with only the usual attributes. An object literal is much cheaper than adding attributes one by one. */
function readUsual<T>(fields: readonly string[]) {
  const [, , , id = "", , source = "", , type = "", , time = "", , datacontenttype = "", , text = ""] =
    fields;
  const data = (isJsonData(datacontenttype) ? parseJson(text) : text) as T;
  const event: ConsumedEvent<T> = { specversion: "1.0", id, source, type, time, datacontenttype, data };
  return { event: Object.freeze(event), text };
}

/** Returns true if the content type means JSON, or is missing (CloudEvents JSON format, section 3.1.1). */
export function isJsonData(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "application/json") return true;
  const subtype = contentType.split(";", 1)[0]?.trim().toLowerCase().split("/")[1] ?? "";
  return subtype === "json" || subtype.endsWith("+json");
}

const FORBIDDEN_IN_ATTRIBUTES = /[\p{Cc}\p{Cs}\p{Noncharacter_Code_Point}]/u;
/** Matches the texts that nearly all attributes have. It is several times faster than `FORBIDDEN_IN_ATTRIBUTES`. */
const ASCII = /^[ -~]*$/;

/**
 * Returns whether a text can be the value of a CloudEvents attribute. It must not contain control characters, lone surrogates and
 * noncharacters (CloudEvents 1.0.2, section 3).
 */
export const isAttributeText = (text: string): boolean =>
  ASCII.test(text) || !FORBIDDEN_IN_ATTRIBUTES.test(text);
