import { CloudEvent, type CloudEventV1, HTTP } from "cloudevents";
import { isJsonData, readAttributes } from "./cloud-event.ts";
import { parseExactly } from "./exact-json.ts";

/** An event in the JSON format of CloudEvents 1.0. */
export type StructuredEvent = Readonly<Record<string, unknown>>;

/**
 * The headers of an event in binary mode (HTTP binding of CloudEvents 1.0.2, section 3.1). They are the library's; but its body is
 * not sent, for it prints data anew: a sender of the event sends the bytes of its entry.
 *
 * @param fields the entry: name, value, name, value …
 */
export function binaryHeaders(fields: readonly string[]): Record<string, string> {
  const { data_base64: _, datacontenttype, ...attributes } = readAttributes(fields).attributes;
  const encoded = Object.entries(attributes).map(([name, value]) => [name, encodeHeader(value)] as const);
  const isOurs = ([name]: readonly [string, string]): boolean => OWN_HEADERS.has(name);
  const event = Object.fromEntries(encoded.filter((each) => !isOurs(each)));
  const { headers } = HTTP.binary(event as Record<string, string> & CloudEventV1<undefined>);
  const ours = encoded.filter(isOurs).map(([name, value]) => [`ce-${name}`, value]);
  // The library invents a type where there is none.
  const { "content-type": __, ...others } = headers as Record<string, string>;
  const type = datacontenttype === undefined ? {} : { "content-type": datacontenttype };
  return { ...type, ...others, ...Object.fromEntries(ours) };
}

/** The library prints a time anew, to the millisecond, and finds a name of every object in its own table. */
const OWN_HEADERS: ReadonlySet<string> = new Set(["time", "constructor"]);

/**
 * The event in structured mode, as a value that is printed with the numbers of its data as they were spelled.
 *
 * @param fields the entry: name, value, name, value …
 * @param maxDataChars longer data is left out
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

/** The class prints a time anew, refuses an extension that an older version knew, and takes one for its own method. */
const OWN_ATTRIBUTES: ReadonlySet<string> = new Set(["time", "schemaurl", "validate"]);

/** Data that says that it is JSON, and is none, is shown as text. */
function readExactly(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    return text;
  }
}

/** Section 3.1.3.2: all but printable ASCII, and blanks, quotes and percent signs, by their UTF-8 bytes. */
function encodeHeader(value: string): string {
  return value
    .toWellFormed()
    .replace(/[^\x21\x23\x24\x26-\x7e]/gu, (character) =>
      [...Buffer.from(character)]
        .map((byte) => `%${byte.toString(16).toUpperCase().padStart(2, "0")}`)
        .join(""),
    );
}
