import { isAscii, isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { parseForm } from "../../event/form.ts";
import type { FormReading } from "../../event/form-reading.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { type Fault, invalidBody } from "../fault.ts";
import { JsonText } from "./payload-slice.ts";
import { parseXml } from "./xml.ts";

/** Format of a message body, as declared by a `Content-Type` header. */
export interface BodyFormat {
  readonly kind: "json" | "form" | "xml" | "ndjson" | "text" | "bytes";
  /** Value of the `charset` parameter in lower case, if there is one. */
  readonly charset?: string;
}

export interface Body {
  readonly kind: BodyFormat["kind"];
  readonly bytes: Buffer;
  /** Decoded text. `undefined` for binary bodies (`bytes`). */
  readonly text: string | undefined;
  /** Whether the received bytes equal `text` encoded as UTF-8. */
  readonly isVerbatim: boolean;
  /**
   * Parsed value, on which paths are evaluated. Forms and XML become JSON values, text and NDJSON stay strings. `undefined` for
   * binary bodies.
   */
  readonly value: unknown;
  /** The JSON text from which `value` was parsed. `undefined` if the body is not JSON. */
  readonly json: JsonText | undefined;
  /** Content type of an event whose data is the whole body (CloudEvents `datacontenttype`). */
  readonly contentType: string;
}

const JSON_TYPE = "application/json";
const JSON_FORMAT: BodyFormat = { kind: "json" };

const KINDS: ReadonlyMap<string, BodyFormat["kind"]> = new Map([
  [JSON_TYPE, "json"],
  ["text/json", "json"],
  ["application/x-www-form-urlencoded", "form"],
  ["application/xml", "xml"],
  ["text/xml", "xml"],
  ["application/x-ndjson", "ndjson"],
  ["application/ndjson", "ndjson"],
  ["application/jsonl", "ndjson"],
  ["application/x-jsonlines", "ndjson"],
]);

const NO_TEXT = { text: undefined, value: undefined, json: undefined, isVerbatim: true } as const;

const CHARSET = /;\s*charset\s*=\s*(?:"([^"]*)"|([^;\s"]+))/i;

/**
 * Parses a `Content-Type` header. A missing header means JSON. Returns `undefined` for `multipart/*`, which the gateway rejects
 * with status 415.
 */
export function parseBodyFormat(contentType: string | undefined): BodyFormat | undefined {
  if (contentType === undefined || contentType === JSON_TYPE) return JSON_FORMAT;
  const end = contentType.indexOf(";");
  const type = (end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase();
  if (type.startsWith("multipart/")) return undefined;
  const kind = findBodyKind(type);
  if (end === -1) return { kind };
  const match = CHARSET.exec(contentType);
  const charset = (match?.[1] ?? match?.[2])?.trim().toLowerCase();
  return charset === undefined ? { kind } : { kind, charset };
}

/**
 * Decodes and parses a body according to its content type. An error rejects the whole delivery.
 *
 * @param isPart whether the body was cut out of a text that was already decoded. A leading U+FEFF in plain text is then content, not a byte
 * order mark
 */
export function readBody(
  bytes: Buffer,
  contentType = JSON_TYPE,
  { isPart = false }: { readonly isPart?: boolean } = {},
): Result<Body, Fault> {
  const format = parseBodyFormat(contentType);
  if (format === undefined) return err(invalidBody("multipart bodies are not accepted"));
  const { kind } = format;
  if (kind === "bytes") return ok({ kind, bytes, contentType, ...NO_TEXT });
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
    contentType: isJson ? JSON_TYPE : withUtf8Charset(contentType, format),
  });
}

/** Extracts the body that a form field contains, according to the channel's `forms` field. */
export function readForm(form: Body, reading: FormReading): Result<Body, Fault> {
  if (reading === "fields") return ok(form);
  if ("refuse" in reading) {
    return err(invalidBody(`this channel does not accept forms: ${reading.refuse}`));
  }
  const { field } = reading;
  const found = Object.entries(form.value ?? {}).find(([name]) => name === field)?.[1];
  if (typeof found === "string") return readBody(Buffer.from(found), JSON_TYPE);
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
    case "form":
      return ok(parseForm(text));
    case "xml":
      return parseXml(text);
    case "ndjson":
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
  if (type.endsWith("+json")) return "json";
  if (type.endsWith("+xml")) return "xml";
  return type.startsWith("text/") ? "text" : "bytes";
}

const findCharset = (bytes: Buffer, { kind, charset }: BodyFormat): string | undefined =>
  charset ?? (kind === "xml" ? xmlCharset(bytes) : undefined);

/**
 * Returns the charset from a byte order mark or the XML declaration (RFC 7303 section 3). Only used if the content type has no
 * `charset` parameter.
 */
function xmlCharset(bytes: Buffer): string | undefined {
  const start = bytes.toString("latin1", 0, 100);
  if (start.startsWith("\xFF\xFE")) return "utf-16le";
  if (start.startsWith("\xFE\xFF")) return "utf-16be";
  return /^<\?xml[^>]*\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']/.exec(start)?.[1]?.toLowerCase();
}

/** Sets the charset parameter of a content type to UTF-8, because events contain the decoded text. */
function withUtf8Charset(contentType: string, { charset }: BodyFormat): string {
  if (charset === undefined || charset === "utf-8") return contentType;
  return contentType.replace(CHARSET, "; charset=utf-8");
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
