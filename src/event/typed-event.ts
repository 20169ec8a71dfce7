import { CloudEvent, type CloudEventV1, HTTP } from "cloudevents";
import { isJsonData, readAttributes } from "./cloud-event.ts";
import { parseExactly } from "./exact-json.ts";

/** A CloudEvents 1.0 event in JSON format. */
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
  // Remove the content type of the library, which it adds even if the event has none.
  const { "content-type": __, ...others } = headers as Record<string, string>;
  const type = datacontenttype === undefined ? {} : { "content-type": datacontenttype };
  return { ...type, ...others, ...Object.fromEntries(ours) };
}

/**
 * Attributes that the `cloudevents` library would get wrong in headers. It rounds `time`, and confuses `constructor` with an
 * inherited property.
 */
const OWN_HEADERS: ReadonlySet<string> = new Set(["time", "constructor"]);

/**
 * Returns an event as a JSON object. `JSON.stringify` prints its numbers exactly as the sender wrote them.
 *
 * @param fields the stream entry, with names and values in turn
 * @param maxDataChars maximum length of the data; longer data is left out
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
 * Attributes that the `CloudEvent` class would get wrong. It reformats `time`, rejects the former attribute `schemaurl`, and has a
 * method `validate`.
 */
const OWN_ATTRIBUTES: ReadonlySet<string> = new Set(["time", "schemaurl", "validate"]);

/** Parses JSON data. If the data is not valid JSON, returns its text. */
function readExactly(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return text;
  }
}

/**
 * Percent-encodes a header value: spaces, double quotes, percent signs and all but printable ASCII, as UTF-8 bytes (HTTP binding,
 * section 3.1.3.2).
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
