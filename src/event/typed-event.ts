import { CloudEvent, type CloudEventV1, HTTP } from "cloudevents";
import { isJsonData, readAttributes } from "./cloud-event.ts";
import { parseExactly } from "./exact-json.ts";

/** An event in the JSON format of CloudEvents 1.0. */
export type StructuredEvent = Readonly<Record<string, unknown>>;

/**
 * Returns the headers of an event in binary mode (CloudEvents 1.0.2 HTTP binding, section 3.1).
 *
 * The `cloudevents` library builds the headers. The caller must send the original bytes as the body, because the library would
 * serialize the data again.
 *
 * @param fields the stream entry, with alternating names and values
 */
export function binaryHeaders(fields: readonly string[]): Record<string, string> {
  const { data_base64: _, datacontenttype, ...attributes } = readAttributes(fields).attributes;
  const encoded = Object.entries(attributes).map(([name, value]) => [name, encodeHeader(value)] as const);
  const isOurs = ([name]: readonly [string, string]): boolean => OWN_HEADERS.has(name);
  const event = Object.fromEntries(encoded.filter((each) => !isOurs(each)));
  const { headers } = HTTP.binary(event as Record<string, string> & CloudEventV1<undefined>);
  const ours = encoded.filter(isOurs).map(([name, value]) => [`ce-${name}`, value]);
  // The library adds a content type even if the event has none.
  const { "content-type": __, ...others } = headers as Record<string, string>;
  const type = datacontenttype === undefined ? {} : { "content-type": datacontenttype };
  return { ...type, ...others, ...Object.fromEntries(ours) };
}

/**
 * Attributes whose headers are set without the `cloudevents` library. It rounds `time` to milliseconds, and looks names up in a plain
 * object, which has an inherited `constructor`.
 */
const OWN_HEADERS: ReadonlySet<string> = new Set(["time", "constructor"]);

/**
 * Returns the event in structured mode. `JSON.stringify` prints the numbers in its data as the sender spelled them.
 *
 * @param fields the stream entry, with alternating names and values
 * @param maxDataChars maximum length of the data; longer data is omitted
 */
export function structuredEvent(fields: readonly string[], maxDataChars: number): StructuredEvent {
  const { attributes, text } = readAttributes(fields);
  const { data_base64: base64, ...rest } = attributes;
  const entries = Object.entries(rest);
  const event: Record<string, unknown> = Object.fromEntries(
    entries.filter(([name]) => !OWN_ATTRIBUTES.has(name)),
  );
  if (base64 !== undefined && base64.length <= maxDataChars) event.data_base64 = base64;
  if (text !== undefined && text.length <= maxDataChars) {
    event.data = isJsonData(attributes.datacontenttype) ? readExactly(text) : text;
  }
  const { body } = HTTP.structured(new CloudEvent(event, false));
  const { time: _, ...printed } = parseExactly(String(body)) as Record<string, unknown>;
  return { ...printed, ...Object.fromEntries(entries.filter(([name]) => OWN_ATTRIBUTES.has(name))) };
}

/**
 * Attributes that are set without the `CloudEvent` class. It reformats `time`, rejects `schemaurl` from earlier CloudEvents versions, and
 * has a method called `validate`.
 */
const OWN_ATTRIBUTES: ReadonlySet<string> = new Set(["time", "schemaurl", "validate"]);

/** Parses JSON data. Returns the text itself if the data is not valid JSON despite its content type. */
function readExactly(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return text;
  }
}

/**
 * Percent-encodes spaces, double quotes, percent signs and everything outside printable ASCII as UTF-8 bytes
 * (HTTP binding, section 3.1.3.2).
 */
function encodeHeader(value: string): string {
  return value
    .toWellFormed()
    .replace(/[^\x21\x23\x24\x26-\x7e]/gu, (character) =>
      [...Buffer.from(character)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
        .join(""),
    );
}
