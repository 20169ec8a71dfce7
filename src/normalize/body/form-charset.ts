import type { BodyReading } from "../../event/body-reading.ts";
import { readCharset } from "../../event/content-type.ts";
import { parseJson } from "../../event/parse-json.ts";
import { type FormPart, getPartCharset } from "../../lib/multipart.ts";
import { queryValues } from "../../lib/urlencoded.ts";

export const CHARSET_HINT =
  "the sender should declare its encoding in `Content-Type`, or you can set the channel's `formCharset`";

/** Returns the encoding of a form: from the channel's config, the content type, or the field `_charset_` (HTML, section 4.10.18.5). */
export function findFormCharset(
  bytes: Buffer,
  contentType: string,
  setting: BodyReading["formCharset"],
): string {
  if (typeof setting === "string") return setting.toLowerCase();
  const inField = (name: string): string | undefined => {
    const value = bytes.includes(name) ? queryValues(`?${bytes.toString("latin1")}`)[name] : undefined;
    return typeof value === "string" && value !== "" ? value.toLowerCase() : undefined;
  };
  const named = setting && "field" in setting ? inField(setting.field) : undefined;
  return named ?? readCharset(contentType) ?? inField("_charset_") ?? "utf-8";
}

/** Returns a form as ASCII text, with all other bytes escaped. */
export const escapeBytes = (bytes: Buffer): string =>
  bytes
    .toString("latin1")
    .replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16).toUpperCase()}`);

/** Returns a function that finds the encoding of a field in `multipart/form-data`. */
export function createCharsetOf(
  parts: readonly FormPart[],
  contentType: string,
  setting: BodyReading["formCharset"],
): (part: FormPart) => string {
  if (typeof setting === "string") return () => setting;
  const inField = (name: string): string | undefined => {
    const field = parts.find((part) => part.name === name && !part.isFile);
    return field === undefined || field.bytes.length === 0 ? undefined : field.bytes.toString("latin1");
  };
  const named = setting && "field" in setting ? inField(setting.field) : undefined;
  const perField = setting && "fields" in setting ? parseCharsets(inField(setting.fields)) : undefined;
  const usual = readCharset(contentType) ?? inField("_charset_") ?? "utf-8";
  return (part) => named ?? perField?.get(part.name) ?? getPartCharset(part) ?? usual;
}

/** Parses a JSON object with the encodings of fields. Returns `undefined` for any other text. */
function parseCharsets(text = ""): ReadonlyMap<string, string> | undefined {
  try {
    const value: unknown = parseJson(text);
    if (typeof value !== "object" || value === null) return undefined;
    return new Map(
      Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
    );
  } catch {
    return undefined;
  }
}
