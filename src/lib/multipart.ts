import { isUtf8 } from "node:buffer";
import { createRequire } from "node:module";
import { TextDecoder } from "node:util";
import type { MultipartPart } from "@remix-run/multipart-parser";
import { readCharset } from "../event/content-type.ts";
import { err, ok, type Result } from "./result.ts";

/** One field or file of a form in `multipart/form-data` (RFC 7578). */
export interface FormPart {
  readonly name: string;
  /** Name of the file without directories. `undefined` for fields, and for files without a name. */
  readonly filename: string | undefined;
  /** Content type as declared by the part. `undefined` if it declares none. */
  readonly contentType: string | undefined;
  readonly isFile: boolean;
  readonly bytes: Buffer;
}

/** Maximum number of fields and files in a form. */
const MAX_PARTS = 1_000;
const MAX_PART_HEADER_BYTES = 8 * 1024;
/** Maximum length of the name of a field or file, in characters. */
const MAX_NAME_LENGTH = 1_024;
/** RFC 2046 section 5.1.1 allows 70 characters. Some senders use more. */
const MAX_BOUNDARY_LENGTH = 200;
const BOUNDARY = /;\s*boundary\s*=\s*(?:"([^"]*)"|([^;\s"]+))/i;
const CRLF = Buffer.from("\r\n");
/** Characters of a field or file name in an error message. */
const MAX_SHOWN_CHARS = 100;

/**
 * Splits a form into its parts. The error says where the form is invalid, and contains at most a part of a name.
 *
 * The parser library is loaded at the first call, because most gateways never receive such a form.
 */
export function splitForm(body: Buffer, contentType: string): Result<readonly FormPart[], string> {
  const match = BOUNDARY.exec(contentType);
  const boundary = match?.[1] ?? match?.[2] ?? "";
  if (!/^[ -~]+$/.test(boundary) || boundary.length > MAX_BOUNDARY_LENGTH)
    return err("its Content-Type has no valid `boundary`");
  // Some senders put a line break before the first boundary.
  const form = body.indexOf(CRLF) === 0 ? body.subarray(CRLF.length) : body;
  const starts = findPartStarts(form, boundary);
  if (!starts.ok) return starts;
  parser ??= createRequire(import.meta.url)("@remix-run/multipart-parser") as Parser;
  const { parseMultipart, MultipartParseError, MaxPartsExceededError, MaxHeaderSizeExceededError } = parser;
  const limits = {
    maxHeaderSize: MAX_PART_HEADER_BYTES,
    maxFileSize: form.length,
    maxTotalSize: form.length,
    maxParts: MAX_PARTS,
  };
  const parts: FormPart[] = [];
  try {
    for (const part of parseMultipart(form, { boundary, ...limits })) {
      const header = readHeader(form, starts.value[parts.length] ?? form.length);
      if (header === undefined) return err(`the headers of part ${parts.length + 1} are not valid UTF-8`);
      const read = readPart(part, header, parts.length + 1);
      if (!read.ok) return read;
      parts.push(read.value);
    }
  } catch (error) {
    if (error instanceof MaxPartsExceededError) return err(`it has more than ${MAX_PARTS} parts`);
    if (error instanceof MaxHeaderSizeExceededError)
      return err(`the headers of part ${parts.length + 1} are larger than ${MAX_PART_HEADER_BYTES} bytes`);
    if (error instanceof MultipartParseError) return err(INCOMPLETE);
    throw error;
  }
  return ok(parts);
}

type Parser = typeof import("@remix-run/multipart-parser");
let parser: Parser | undefined;

const INCOMPLETE = "it ends before its closing boundary";

/**
 * Returns the positions of the parts, or the error of the first boundary that is not a complete line. The library would skip the two bytes
 * behind such a boundary, whatever they are.
 */
function findPartStarts(form: Buffer, boundary: string): Result<readonly number[], string> {
  const delimiter = Buffer.from(`\r\n--${boundary}`, "latin1");
  if (form.indexOf(delimiter.subarray(CRLF.length)) !== 0) return err("it does not start with its boundary");
  const starts: number[] = [];
  for (let end = delimiter.length - CRLF.length; ; ) {
    const next = form.toString("latin1", end, end + 2);
    if (next === "--") return ok(starts);
    if (next !== "\r\n")
      return err(
        next.length < 2 ? INCOMPLETE : `the boundary before byte ${end} is not followed by a line break`,
      );
    starts.push(end + 2);
    const at = form.indexOf(delimiter, end);
    if (at < 0) return err(INCOMPLETE);
    end = at + delimiter.length;
  }
}

type Header = ReadonlyMap<string, string>;

/**
 * Reads the headers of the part at `start`. Returns `undefined` if they are not valid UTF-8. The library would cut off a header at a
 * Unicode line separator, which a file name may contain.
 */
function readHeader(form: Buffer, start: number): Header | undefined {
  const header = new Map<string, string>();
  const bytes = form.subarray(start, form.indexOf("\r\n\r\n", start));
  if (!isUtf8(bytes)) return undefined;
  for (const line of bytes.toString().split("\r\n")) {
    const colon = line.indexOf(":");
    const name = line.slice(0, Math.max(colon, 0)).trim().toLowerCase();
    if (!header.has(name)) header.set(name, line.slice(colon + 1).trim());
  }
  return header;
}

function readPart(part: MultipartPart, header: Header, number: number): Result<FormPart, string> {
  const parameters = readParameters(header.get("content-disposition") ?? "");
  const name = parameters?.get("name");
  if (name === undefined)
    return err(`part ${number} has no \`Content-Disposition: form-data\` with a \`name\``);
  const encoding = header.get("content-transfer-encoding")?.toLowerCase() ?? "binary";
  if (!PLAIN_ENCODINGS.has(encoding))
    return err(`the part ${showName(name)} has a Content-Transfer-Encoding, which RFC 7578 does not allow`);
  const filename = readFilename(parameters);
  if (Math.max(name.length, filename?.length ?? 0) > MAX_NAME_LENGTH)
    return err(`the name of part ${number} is longer than ${MAX_NAME_LENGTH} characters`);
  const contentType = header.get("content-type");
  const [chunk, ...others] = part.content;
  const bytes = chunk !== undefined && others.length === 0 ? chunk : part.bytes;
  return ok({
    name,
    filename,
    contentType,
    isFile: filename !== undefined || (contentType !== undefined && !TEXT_TYPE.test(contentType)),
    bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength),
  });
}

const PLAIN_ENCODINGS = new Set(["7bit", "8bit", "binary"]);
/** Content types of parts that are fields, if the part has no file name. */
const TEXT_TYPE =
  /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml)\b|application\/x-www-form-urlencoded\b)/i;
const PARAMETER = /;\s*([\w*-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^;\s"]+))/g;

/** Parses `form-data; name="…"; filename="…"`. Browsers do not escape backslashes in names, so only `\"` and `\\` are escapes. */
function readParameters(disposition: string): ReadonlyMap<string, string> | undefined {
  if (!/^form-data\s*(?:;|$)/i.test(disposition)) return undefined;
  const parameters = new Map<string, string>();
  for (const [, name = "", quoted, token = ""] of disposition.matchAll(PARAMETER)) {
    const value = quoted?.replace(/\\(["\\])/g, "$1") ?? token;
    if (!parameters.has(name.toLowerCase())) parameters.set(name.toLowerCase(), value);
  }
  return parameters;
}

/** Returns the file name without directories, because readers may use it as the name of a file. */
function readFilename(parameters: ReadonlyMap<string, string> | undefined): string | undefined {
  const whole = decodeExtended(parameters?.get("filename*")) ?? parameters?.get("filename");
  return whole?.replace(/^.*[/\\]/s, "");
}

/** Decodes an extended parameter in UTF-8 (RFC 8187). Returns `undefined` if it is invalid or in another encoding. */
function decodeExtended(value: string | undefined): string | undefined {
  const encoded = /^utf-8'[^']*'(.*)$/is.exec(value ?? "")?.[1];
  try {
    return encoded === undefined ? undefined : decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

type Values<T> = Record<string, T | T[]>;

/**
 * Collects the parts of a form in an object. The values of a repeated name form an array. The error names the first field that is invalid
 * in its character encoding, because replacement characters would make different values equal.
 *
 * @param charsetOf returns the encoding of a field
 * @param fileOf returns the value of a file
 */
export function collectParts<T>(
  parts: readonly FormPart[],
  charsetOf: (part: FormPart) => string,
  fileOf: (part: FormPart) => T,
): Result<Readonly<Values<string | T>>, string> {
  const collected: Values<string | T> = Object.create(null);
  for (const part of parts) {
    const value = part.isFile ? ok(fileOf(part)) : decodeField(part, charsetOf(part));
    if (!value.ok) return value;
    const before = collected[part.name];
    if (before === undefined) collected[part.name] = value.value;
    else if (Array.isArray(before)) before.push(value.value);
    else collected[part.name] = [before, value.value];
  }
  return ok(collected);
}

/** Returns the encoding that a part declares for itself. */
export const getPartCharset = ({ contentType }: FormPart): string | undefined =>
  contentType === undefined ? undefined : readCharset(contentType);

function decodeField({ name, bytes }: FormPart, charset: string): Result<string, string> {
  let decoder: TextDecoder;
  try {
    decoder = new TextDecoder(charset, { fatal: true, ignoreBOM: true });
  } catch {
    return err(
      `the charset ${JSON.stringify(charset.slice(0, MAX_SHOWN_CHARS))} of the field ${showName(name)} is not supported`,
    );
  }
  try {
    return ok(decoder.decode(bytes));
  } catch {
    return err(`the field ${showName(name)} is not valid ${charset}`);
  }
}

const showName = (name: string): string => JSON.stringify(name.slice(0, MAX_SHOWN_CHARS));
