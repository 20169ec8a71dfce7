/**
 * A CloudEvents 1.0 event as it stands on its topic: what its sender has not set is not there. It has the shape of `CloudEventV1`
 * of the package `cloudevents`.
 */
export interface ConsumedEvent<T = unknown> {
  readonly specversion: "1.0";
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** RFC 3339. */
  readonly time?: string;
  readonly datacontenttype?: string;
  readonly subject?: string;
  readonly dataschema?: string;
  /** The value of JSON; other text as a string; bytes as a `Buffer`; undefined where there is none. */
  readonly data?: T;
  readonly data_base64?: string;
  readonly traceparent?: string;
  readonly [extension: string]: unknown;
}

/** The attribute of an event that somebody published to try a channel out. */
export const TEST_EXTENSION = "inlettest";

/** True of the entry of such an event, given as name, value, name, value … */
export function isTestEvent(fields: readonly string[]): boolean {
  // Extensions come last.
  for (let at = fields.length - 2; at >= 0; at -= 2) if (fields[at] === TEST_EXTENSION) return true;
  return false;
}

/** The attributes of an entry, given as name, value, name, value …, and its `data` as text where it has such. */
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

/** The event of an entry, with its `data` as a value. */
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

/** True of an entry, given as name, value, name, value …, to which no sender has added: with the gateway's own attributes, in their order. */
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

/** An object that is written down at once takes a fraction of the time of one to which attributes are added by name. */
function readUsual<T>(fields: readonly string[]) {
  const [, , , id = "", , source = "", , type = "", , time = "", , datacontenttype = "", , text = ""] =
    fields;
  const data = (isJsonData(datacontenttype) ? JSON.parse(text) : text) as T;
  const event: ConsumedEvent<T> = { specversion: "1.0", id, source, type, time, datacontenttype, data };
  return { event: Object.freeze(event), text };
}

/** By media type, as the JSON format of CloudEvents has it (section 3.1.1); data without a type is JSON. */
export function isJsonData(contentType: string | undefined): boolean {
  if (contentType === undefined || contentType === "application/json") return true;
  const subtype = contentType.split(";", 1)[0]?.trim().toLowerCase().split("/")[1] ?? "";
  return subtype === "json" || subtype.endsWith("+json");
}
