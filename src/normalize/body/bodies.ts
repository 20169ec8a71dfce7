import { isAscii, isUtf8 } from "node:buffer";
import { TextDecoder } from "node:util";
import { parseForm } from "../../event/form.ts";
import type { FormReading } from "../../event/form-reading.ts";
import { err, ok, type Result } from "../../lib/result.ts";
import { type Fault, invalidBody } from "../fault.ts";
import { JsonText } from "./payload-slice.ts";
import { parseXml } from "./xml.ts";

/** How the bytes of a body are to be read, by its `Content-Type`. */
export interface BodyFormat {
  readonly kind: "json" | "form" | "xml" | "ndjson" | "text" | "bytes";
  /** The `charset` parameter in lower case, where there is one. */
  readonly charset?: string;
}

/** A body read by its format. */
export interface Body {
  readonly kind: BodyFormat["kind"];
  readonly bytes: Buffer;
  /** The decoded text; undefined for `bytes`. */
  readonly text: string | undefined;
  /** True where the text in UTF-8 is the received bytes. */
  readonly isVerbatim: boolean;
  /** The value that paths see: of JSON itself; form and XML by their mapping; text and the lines of NDJSON as a string; none for bytes. */
  readonly value: unknown;
  /** Where the value stands as JSON in the body. */
  readonly json: JsonText | undefined;
  /** The `datacontenttype` of the whole body. */
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

/** Of a body of bytes. */
const NO_TEXT = { text: undefined, value: undefined, json: undefined, isVerbatim: true } as const;

const CHARSET = /;\s*charset\s*=\s*(?:"([^"]*)"|([^;\s"]+))/i;

/** The body format that a `Content-Type` asks for; JSON where there is none; undefined (415) for `multipart/*`. */
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
 * Reads a body; the error is what its delivery fails with.
 *
 * `isPart`: the body was part of a text that has been decoded before: U+FEFF at its start is content, no byte order mark. JSON
 * still begins after it (RFC 8259, section 8.1).
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

/** The body that a form stands for, by how its channel reads forms. */
export function readForm(form: Body, reading: FormReading): Result<Body, Fault> {
  if (reading === "fields") return ok(form);
  if ("refuse" in reading) {
    return err(invalidBody(`the delivery comes as a form, which cannot be read here: ${reading.refuse}`));
  }
  const { field } = reading;
  const found = Object.entries(form.value ?? {}).find(([name]) => name === field)?.[1];
  if (typeof found === "string") return readBody(Buffer.from(found), JSON_TYPE);
  const shown = JSON.stringify(field);
  return err(invalidBody(`the form has no single field ${shown}, which is to hold the JSON of the delivery`));
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

/** RFC 7303 section 3: without a parameter, a byte order mark or the document's own declaration decides. */
function xmlCharset(bytes: Buffer): string | undefined {
  const start = bytes.toString("latin1", 0, 100);
  if (start.startsWith("\xFF\xFE")) return "utf-16le";
  if (start.startsWith("\xFE\xFF")) return "utf-16be";
  return /^<\?xml[^>]*\sencoding\s*=\s*["']([A-Za-z0-9._-]+)["']/.exec(start)?.[1]?.toLowerCase();
}

/** Events carry text in UTF-8: a charset that was decoded must not be named on. */
function withUtf8Charset(contentType: string, { charset }: BodyFormat): string {
  if (charset === undefined || charset === "utf-8") return contentType;
  return contentType.replace(CHARSET, "; charset=utf-8");
}

/** The text is without its byte order mark: that belongs to the encoding. */
type DecodedText = Pick<Body, "isVerbatim"> & { readonly text: string };

const UTF8_NAMES = new Set(["utf-8", "utf8", "us-ascii", "ascii"]);

/** Decodes a body by the name of its charset (WHATWG Encoding labels; UTF-8 where none is given), strictly. */
function decodeText(
  bytes: Buffer,
  charset = "utf-8",
  { keepsMark }: { readonly keepsMark: boolean },
): Result<DecodedText, string> {
  if (!UTF8_NAMES.has(charset)) return decodeWithCharset(bytes, charset);
  // Copying ASCII is the cheaper way to the same string.
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
