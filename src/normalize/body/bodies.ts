import { isAscii, isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { type BodyReading, DEFAULT_READING, type FormReading } from "../../event/body-reading.ts";
import { isAttributeText } from "../../event/cloud-event.ts";
import {
  isMediaType,
  isTypeList,
  mergeContentTypes,
  readCharset,
  withCharset,
} from "../../event/content-type.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { parseForm } from "../../lib/urlencoded.ts";
import { type Fault, invalidBody } from "../fault.ts";
import type { Body, BodyFormat } from "./body.ts";
import { CHARSET_HINT, escapeBytes, findFormCharset } from "./form-charset.ts";
import { withFormatHint } from "./format-hint.ts";
import { readMultipart } from "./multipart-body.ts";
import { JsonText } from "./payload-slice.ts";
import { parseXml } from "./xml.ts";
import { findXmlCharset } from "./xml-charset.ts";

export type { Body } from "./body.ts";

const JSON_TYPE = "application/json";
const JSON_FORMAT: BodyFormat = { kind: "json" };

const KINDS: ReadonlyMap<string, BodyFormat["kind"]> = new Map([
  [JSON_TYPE, "json"],
  ["text/json", "json"],
  ["application/x-www-form-urlencoded", "form"],
  ["application/xml", "xml"],
  ["text/xml", "xml"],
]);
/** Types of JSON lines. Senders use many, because no type is registered. `json-seq` (RFC 7464) separates values by another character. */
const LINES_TYPE =
  /^(?:application|text)\/(?:x-)?(?:ndjson|jsonl|jsonlines|json-lines|ldjson|json-seq)$|\+json-seq$|^application\/stream\+json$/;

/** Content types of events whose sender declares something that is not a media type. */
const TYPES: Readonly<Record<BodyFormat["kind"], string>> = {
  json: JSON_TYPE,
  ndjson: JSON_TYPE,
  form: "application/x-www-form-urlencoded",
  multipart: JSON_TYPE,
  xml: "application/xml",
  text: "text/plain",
  bytes: "application/octet-stream",
};

const NO_BYTES = Buffer.alloc(0);
const MAX_BLANK_BYTES = 16;
const NO_TEXT = { text: undefined, value: undefined, json: undefined, isVerbatim: true } as const;

/**
 * Parses a `Content-Type` header. A missing header means JSON. Returns `undefined` for `multipart/*` other than forms, which the
 * gateway rejects with status 415.
 */
export function parseBodyFormat(contentType: string | undefined): BodyFormat | undefined {
  if (contentType === undefined || contentType === JSON_TYPE) return JSON_FORMAT;
  const end = contentType.indexOf(";");
  const type = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (type.startsWith("multipart/"))
    return type === "multipart/form-data" ? { kind: "multipart" } : undefined;
  const kind = findBodyKind(type);
  if (end === -1) return { kind };
  const charset = readCharset(contentType);
  return charset === undefined ? { kind } : { kind, charset };
}

/** Returns whether bodies with this `Content-Type` header can be read. */
export const isReadableType = (header: string | undefined): boolean =>
  parseBodyFormat(mergeContentTypes(header)) !== undefined;

/**
 * Decodes and parses a body according to its content type. An empty body has no value. An error rejects the whole delivery.
 */
export function readBody(
  bytes: Buffer,
  contentType = JSON_TYPE,
  { isPart = false, reading = DEFAULT_READING }: ReadOptions = {},
): Result<Body, Fault> {
  const format = parseBodyFormat(contentType);
  if (format === undefined)
    return err(invalidBody("the only accepted multipart bodies are forms (multipart/form-data)"));
  if (isTypeList(contentType))
    return err(invalidBody(`the request declares several content types: ${contentType}`));
  const { kind } = format;
  if (!isPart && isEmpty(bytes, kind)) return ok({ kind, bytes: NO_BYTES, contentType, ...NO_TEXT });
  const type = isMediaType(contentType) && isAttributeText(contentType) ? contentType : TYPES[kind];
  if (kind === "bytes") return ok({ kind, bytes, contentType: type, ...NO_TEXT });
  if (kind === "form") return readForm(bytes, type, reading);
  if (kind === "multipart") {
    const form = readMultipart(bytes, contentType, reading);
    return form.ok ? extractForm(form.value, reading.forms) : form;
  }
  const decoded = decodeText(bytes, findCharset(bytes, format), { keepsMark: isPart && kind === "text" });
  if (!decoded.ok) return err(invalidBody(decoded.error));
  const { text, isVerbatim } = decoded.value;
  const read = readText(kind, text);
  if (!read.ok) return read;
  const isJson = kind === "json" || kind === "ndjson";
  return ok({
    kind,
    bytes,
    text,
    isVerbatim,
    value: read.value instanceof JsonText ? read.value.value : read.value,
    json: read.value instanceof JsonText ? read.value : undefined,
    contentType: isJson ? JSON_TYPE : withUtf8Charset(type, format),
  });
}

/** Returns whether a body has no value. White space has none in JSON and XML. */
const isEmpty = (bytes: Buffer, kind: BodyFormat["kind"]): boolean =>
  bytes.length === 0 ||
  (bytes.length <= MAX_BLANK_BYTES &&
    (kind === "json" || kind === "xml") &&
    /^\s*$/.test(bytes.toString("latin1")));

interface ReadOptions {
  /**
   * Whether the body was cut out of a text that was already decoded. A leading U+FEFF in plain text is then content, not a byte order mark.
   */
  readonly isPart?: boolean;
  readonly reading?: BodyReading;
}

const UTF = /^(?:utf|(?:us-)?ascii)/i;

function readForm(
  bytes: Buffer,
  contentType: string,
  { forms, formCharset }: BodyReading,
): Result<Body, Fault> {
  const charset = findFormCharset(bytes, contentType, formCharset);
  const decoded = UTF.test(charset)
    ? decodeText(bytes, charset, { keepsMark: false })
    : ok({ text: escapeBytes(bytes), isVerbatim: isAscii(bytes) });
  if (!decoded.ok) return err(invalidBody(decoded.error));
  const { text, isVerbatim } = decoded.value;
  // The escapes of a form in UTF-16 are in UTF-8 (WHATWG Encoding, section 4.3).
  const fields = UTF.test(charset) ? parseForm(Buffer.from(text)) : parseForm(bytes, charset);
  if (!fields.ok)
    return err(withFormatHint(invalidBody(`${fields.error}; ${CHARSET_HINT}`), { kind: "form", bytes }));
  return extractForm(
    {
      kind: "form",
      bytes,
      text,
      isVerbatim,
      value: fields.value,
      json: undefined,
      contentType:
        charset === "utf-8" && readCharset(contentType) === undefined
          ? contentType
          : withCharset(contentType, UTF.test(charset) ? "utf-8" : charset),
    },
    forms,
  );
}

/** Extracts the body that a form field contains, according to the channel's `forms` field. */
export function extractForm(form: Body, reading: FormReading): Result<Body, Fault> {
  if (reading === "fields") return ok(form);
  if ("refuse" in reading) {
    return err(invalidBody(`this channel does not accept forms: ${reading.refuse}`));
  }
  const { field } = reading;
  const found = Object.entries(form.value ?? {}).find(([name]) => name === field)?.[1];
  if (typeof found === "string" && found !== "") return readBody(Buffer.from(found), JSON_TYPE);
  const shown = JSON.stringify(field);
  return err(invalidBody(`the form must contain exactly one field ${shown} with the JSON of the delivery`));
}

export function readJson(text: string): Result<JsonText, Fault> {
  try {
    return ok(JsonText.parse(text));
  } catch (error) {
    return err(invalidBody(error instanceof Error ? error.message : String(error)));
  }
}

function readText(kind: BodyFormat["kind"], text: string): Result<unknown, Fault> {
  switch (kind) {
    case "json":
      return readJson(text);
    case "xml":
      return parseXml(text);
    case "ndjson":
    case "form":
    case "multipart":
    case "text":
    case "bytes":
      return ok(text);
    default:
      return kind satisfies never;
  }
}

function findBodyKind(type: string): BodyFormat["kind"] {
  if (type === "") return "json";
  const kind = KINDS.get(type);
  if (kind !== undefined) return kind;
  if (LINES_TYPE.test(type)) return "ndjson";
  if (type.endsWith("+json")) return "json";
  if (type.endsWith("+xml")) return "xml";
  return type.startsWith("text/") ? "text" : "bytes";
}

const findCharset = (bytes: Buffer, { kind, charset }: BodyFormat): string | undefined =>
  kind === "xml" ? findXmlCharset(bytes, charset) : charset;

/** Sets the charset parameter of a content type to UTF-8, because events contain the decoded text. */
function withUtf8Charset(contentType: string, { charset }: BodyFormat): string {
  return charset === undefined || charset === "utf-8" ? contentType : withCharset(contentType, "utf-8");
}

/** Decoded text without its byte order mark. */
type DecodedText = Pick<Body, "isVerbatim"> & { readonly text: string };

const UTF8_NAMES = new Set(["utf-8", "utf8", "us-ascii", "ascii"]);

/** Decodes bytes in a charset (a WHATWG Encoding label; UTF-8 by default). Returns an error if the bytes are invalid. */
function decodeText(
  bytes: Buffer,
  charset = "utf-8",
  { keepsMark }: { readonly keepsMark: boolean },
): Result<DecodedText, string> {
  if (!UTF8_NAMES.has(charset)) return decodeWithCharset(bytes, charset);
  // Decode ASCII as Latin-1, which yields the same string but is faster than UTF-8.
  if (isAscii(bytes)) return ok({ text: bytes.toString("latin1"), isVerbatim: true });
  if (!isUtf8(bytes)) return err("the body is not valid UTF-8");
  const text = bytes.toString("utf8");
  return text.startsWith("\uFEFF") && !keepsMark
    ? ok({ text: text.slice(1), isVerbatim: false })
    : ok({ text, isVerbatim: true });
}

function decodeWithCharset(bytes: Buffer, charset: string): Result<DecodedText, string> {
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(charset, { fatal: true });
  } catch {
    return err(`the charset ${JSON.stringify(charset)} is not supported`);
  }
  try {
    return ok({ text: decoder.decode(bytes), isVerbatim: false });
  } catch {
    return err(`the body is not valid ${decoder.encoding}`);
  }
}

/**
 * Maximum size in bytes of an XML body to parse on the main thread. A larger body takes ten times as long to parse as to hand to
 * another thread.
 */
const MAX_INLINE_XML_BYTES = 2 * 1024;
/**
 * Maximum size in bytes of a non-XML body to parse on the main thread. JSON of this size takes up to 2 ms to parse, and queries may
 * visit every node.
 */
const MAX_INLINE_BYTES = 128 * 1024;

/** Returns whether a body must be parsed in another thread, because parsing it here would block the event loop. */
export function isLarge(bytes: number, contentType: string | undefined): boolean {
  if (bytes <= MAX_INLINE_XML_BYTES) return false;
  return bytes > MAX_INLINE_BYTES || parseBodyFormat(contentType)?.kind === "xml";
}
