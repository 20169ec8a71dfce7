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
  /** URI reference of the system that produced the event. */
  readonly source: string;
  /** Event type, for example `order.created`. */
  readonly type: string;
  /** RFC 3339 timestamp, exactly as the sender wrote it. */
  readonly time?: string;
  /** Media type of `data`. */
  readonly datacontenttype?: string;
  /** The subject of the event within its source. */
  readonly subject?: string;
  /** URI of the schema of `data`. */
  readonly dataschema?: string;
  /** The parsed value for JSON, a string for other text, a `Buffer` for bytes. Missing when the event has no data. */
  readonly data?: T;
  /** Binary data in base64. The same bytes are in `data`. */
  readonly data_base64?: string;
  /** W3C Trace Context of the delivery. */
  readonly traceparent?: string;
  /** Extension attributes set by the sender. */
  readonly [extension: string]: unknown;
}

/** Extension attribute that marks a test event. */
export const TEST_EXTENSION = "inlettest";

/** Returns whether an entry is a test event. `fields` alternates names and values. */
export function isTestEvent(fields: readonly string[]): boolean {
  // Extensions come last.
  for (let at = fields.length - 2; at >= 0; at -= 2) if (fields[at] === TEST_EXTENSION) return true;
  return false;
}

/**
 * Splits an entry into its attributes and the text of `data`.
 *
 * @param fields alternating names and values
 * @returns `text` is `undefined` when the event has no text data
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

/** Parses an entry into an event, with JSON data parsed. */
export function readEvent<T>(fields: readonly string[]): {
  readonly event: ConsumedEvent<T>;
  readonly text: string | undefined;
} {
  if (hasUsualNames(fields)) return readUsual(fields);
  const { attributes, text } = readAttributes(fields);
  const { data_base64: base64, datacontenttype } = attributes;
  let data: unknown;
  if (base64 !== undefined) data = Buffer.from(base64, "base64");
  else if (text !== undefined) data = isJsonData(datacontenttype) ? JSON.parse(text) : text;
  const event: Record<string, unknown> = attributes;
  if (data !== undefined) event.data = data;
  return { event: Object.freeze(event) as unknown as ConsumedEvent<T>, text };
}

/** Returns whether an entry has exactly the attributes that the gateway writes, in its order, and no sender extensions. */
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

/** Fast path for `readEvent`: an object literal costs a fraction of adding attributes one by one. */
function readUsual<T>(fields: readonly string[]) {
  const [, , , id = "", , source = "", , type = "", , time = "", , datacontenttype = "", , text = ""] =
    fields;
  const data = (isJsonData(datacontenttype) ? JSON.parse(text) : text) as T;
  const event: ConsumedEvent<T> = { specversion: "1.0", id, source, type, time, datacontenttype, data };
  return { event: Object.freeze(event), text };
}

/** Returns whether data of this content type is JSON (CloudEvents JSON format, section 3.1.1). Data without a type counts as JSON. */
export function isJsonData(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "application/json") return true;
  const subtype = contentType.split(";", 1)[0]?.trim().toLowerCase().split("/")[1] ?? "";
  return subtype === "json" || subtype.endsWith("+json");
}
