import { createHash, createHmac } from "node:crypto";
import { crc32 } from "node:zlib";
import { err, ok, type Result } from "../../lib/result.ts";
import { ENCODINGS, type Encoding, HASHES, type HashName } from "./config.ts";

/** Input or output of a template filter: text, or the bytes of a body or hash. */
type Filtered = string | Buffer;
/**
 * Transforms the value of a template placeholder.
 *
 * @param hmacKey key for the `hmac-…` filters. `undefined` if the channel has no valid secret
 */
type Filter = (value: Filtered, hmacKey?: Buffer) => Filtered;

const TEXT_FILTERS: Readonly<Record<string, (text: string) => string>> = {
  lower: (text) => text.toLowerCase(),
  upper: (text) => text.toUpperCase(),
  trim: (text) => text.trim(),
  uriEncode: (text) => encodeURIComponent(text.toWellFormed()),
  uriDecode: decodeUri,
};
const HMAC = /^hmac-(?<hash>sha1|sha256|sha512)$/;

/**
 * Compiles the filters after `|` in a placeholder. The bytes of a hash become hexadecimal before a text filter and at the end of
 * the chain.
 *
 * @param allowed filters to accept in addition to text filters and hashes
 */
export function compileFilters(
  names: readonly string[],
  allowed: { readonly hmac: boolean },
): Result<(value: Filtered, hmacKey?: Buffer) => string, string> {
  const filters: Filter[] = [];
  for (const name of names) {
    const filter = findFilter(name, allowed);
    if (filter === undefined) return err(`unknown filter ${name}`);
    filters.push(filter);
  }
  return ok((value, hmacKey) =>
    toText(filters.reduce((filtered, filter) => filter(filtered, hmacKey), value)),
  );
}

/** Returns whether the first filter needs the raw bytes of a body instead of its text. */
export const takesBytes = ([first]: readonly string[]): boolean =>
  first !== undefined && (isHash(first) || isEncoding(first) || first === "crc32" || HMAC.test(first));

function findFilter(name: string, allowed: { readonly hmac: boolean }): Filter | undefined {
  if (isHash(name)) return (value) => createHash(name).update(value).digest();
  if (isEncoding(name)) {
    return (value) => (typeof value === "string" ? Buffer.from(value) : value).toString(name);
  }
  if (name === "crc32") return (value) => String(crc32(value));
  const hash = HMAC.exec(name)?.groups?.hash;
  if (hash !== undefined && allowed.hmac) {
    return (value, hmacKey) => (hmacKey ? createHmac(hash, hmacKey).update(value).digest() : "");
  }
  const ofText = Object.hasOwn(TEXT_FILTERS, name) ? TEXT_FILTERS[name] : undefined;
  return ofText && ((value) => ofText(toText(value)));
}

const isHash = (name: string): name is HashName => (HASHES as readonly string[]).includes(name);
const isEncoding = (name: string): name is Encoding => (ENCODINGS as readonly string[]).includes(name);
const toText = (value: Filtered): string => (typeof value === "string" ? value : value.toString("hex"));

function decodeUri(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
