import { createHash } from "node:crypto";
import { mergeContentTypes, readCharset } from "../../event/content-type.ts";
import { parseJson } from "../../event/parse-json.ts";
import type { RawRequest } from "../../event/received.ts";
import { ValueCollector, type Values } from "../../event/values.ts";
import { areBytesEqual } from "../../lib/constant-time.ts";
import { collectParts, getPartCharset, splitForm } from "../../lib/multipart.ts";
import { ok, type Result, unwrap } from "../../lib/result.ts";
import { parseForm, queryValues } from "../../lib/urlencoded.ts";
import { type Consumed, reject, type VerificationFailure } from "../verifier.ts";
import { compileBodyPath } from "./body-path.ts";
import type { Encoding, HashName, SignedMessageConfig } from "./config.ts";
import type { MessageSource, RequestSource } from "./source.ts";

/** Reads one value from a request. Returns `undefined` if the value is missing or repeated. */
export type ReadText = (view: RequestView) => string | undefined;

/** A request whose query and body are parsed when they are first read. */
export class RequestView {
  readonly request: RawRequest;
  /**
   * Other items in the header or field that contains the signature, by name, or by position if they have no names. A repeated name
   * maps to an array.
   */
  items: Values = NO_ITEMS;
  readonly #readAs: string | undefined;
  #query: Values | undefined;
  #body: ParsedBody | undefined;

  constructor(request: RawRequest, readAs?: string) {
    this.request = request;
    this.#readAs = readAs;
  }

  get query(): Values {
    this.#query ??= queryValues(this.request.target);
    return this.#query;
  }

  /** Parsed form fields or JSON value of the body. `undefined` for a body in any other format. */
  get body(): unknown {
    return this.#parsed().value;
  }

  get isForm(): boolean {
    return this.#parsed().isForm;
  }

  /** Whether the body is a form with files, of which `body` contains only the other fields. */
  get hasFiles(): boolean {
    return this.#parsed().hasFiles === true;
  }

  #parsed(): ParsedBody {
    this.#body ??= parse(this.request, this.#readAs);
    return this.#body;
  }
}

interface ParsedBody {
  readonly value: unknown;
  readonly isForm: boolean;
  readonly hasFiles?: boolean;
}

const NO_ITEMS: Values = Object.freeze(Object.create(null));
const FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;

const MULTIPART = /^\s*multipart\/form-data\s*(?:;|$)/i;

function parse({ headers, body }: RawRequest, readAs: string | undefined): ParsedBody {
  const type = readAs ?? mergeContentTypes(headers["content-type"]);
  if (typeof type === "string" && FORM.test(type)) {
    const fields = parseForm(body, readCharset(type));
    return { value: fields.ok ? fields.value : undefined, isForm: true };
  }
  if (typeof type === "string" && MULTIPART.test(type)) return parseMultipart(body, type);
  try {
    return { value: parseJson(body.toString("utf8")), isForm: false };
  } catch {
    return { value: undefined, isForm: false };
  }
}

function parseMultipart(body: Buffer, type: string): ParsedBody {
  const parts = splitForm(body, type);
  if (!parts.ok) return { value: undefined, isForm: true };
  const texts = parts.value.filter(({ isFile }) => !isFile);
  const fields = collectParts(texts, (part) => getPartCharset(part) ?? readCharset(type) ?? "utf-8", String);
  const hasFiles = texts.length < parts.value.length;
  return { value: fields.ok ? fields.value : undefined, isForm: true, hasFiles };
}

/**
 * Compiles a function that reads one value of a request.
 *
 * @throws Error for a name that `findWrongName` rejects
 */
export function compileSource({ in: where, name }: MessageSource): ReadText {
  switch (where) {
    case "header": {
      const lower = name.toLowerCase();
      return ({ request }) => single(request.headers[lower]);
    }
    case "query":
      return ({ query }) => single(query[name]);
    case "item":
      return ({ items }) => single(items[name]);
    case "body": {
      const path = unwrap(compileBodyPath(name), `the path ${name}`);
      return ({ body }) => {
        const values = path(body);
        return values.length === 1 ? scalarToText(values[0]) : undefined;
      };
    }
    default:
      return where satisfies never;
  }
}

/**
 * Compiles a function that returns whether a value is present in a request. Values of any type count, even if they are repeated.
 */
export function compilePresence({ in: where, name }: RequestSource): (view: RequestView) => boolean {
  if (where === "header") return ({ request }) => request.headers[name.toLowerCase()] !== undefined;
  if (where === "query") return ({ query }) => query[name] !== undefined;
  const path = unwrap(compileBodyPath(name), `the path ${name}`);
  return ({ body }) => path(body).length > 0;
}

/**
 * Compiles a function that reads all texts at a path in the body. The function returns `undefined` if any value there is an object
 * or array.
 */
export function compileTexts(name: string): (view: RequestView) => readonly string[] | undefined {
  const path = unwrap(compileBodyPath(name), `the path ${name}`);
  return ({ body }) => {
    const texts = path(body).map(scalarToText);
    return texts.every((text) => text !== undefined) ? texts : undefined;
  };
}

/** Converts a scalar to text, with numbers in JavaScript notation. Returns `undefined` for any other value. */
export function scalarToText(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

const single = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === "string" ? value : undefined;

type SignaturePlace = Pick<
  SignedMessageConfig,
  "in" | "name" | "alsoNamed" | "prefix" | "items" | "encoding"
>;

/**
 * Reads at least one signature from a request, without verifying it. Stores the other items of the same header or field in `view`.
 */
type ReadSignatures = (view: RequestView) => Result<readonly Buffer[], VerificationFailure>;

const HEX = /^(?:[\da-f]{2})+$/i;
/** Maximum number of signatures in a request. Real senders send far fewer. */
const MAX_SIGNATURES = 16;
const MAX_ITEMS = 64;

export function compileSignatures(place: SignaturePlace): ReadSignatures {
  const { items, prefix = "", encoding } = place;
  const where = `the ${place.in === "body" ? "value in the body" : place.in} ${place.name}`;
  const readers = [place.name, ...place.alsoNamed].map((name) => compileSource({ in: place.in, name }));
  const split = items && compileItems(items);
  const isInUrl = place.in === "query" && encoding === "base64";
  return (view) => {
    const signatures: Buffer[] = [];
    let found = false;
    for (const read of readers) {
      const value = read(view);
      if (value === undefined) continue;
      found = true;
      for (const text of split ? split(value, view) : [value]) {
        // A plus sign of base64 that a sender does not escape decodes to a space.
        const signature = decode(isInUrl ? text.replaceAll(" ", "+") : text, prefix, encoding);
        if (signature !== undefined) signatures.push(signature);
      }
    }
    if (!found) return reject("missing", `${where} is missing or repeated`);
    if (signatures.length === 0) return reject("malformed", `${where} holds no ${encoding} signature`);
    if (signatures.length > MAX_SIGNATURES) {
      return reject("malformed", `${where} holds more than ${MAX_SIGNATURES} signatures`);
    }
    return ok(signatures);
  };
}

/** Lists the places of signatures in requests, so that the values there can be removed or hidden. */
export function consumedBy(
  place: Pick<SignaturePlace, "in" | "name"> & { readonly alsoNamed?: readonly string[] },
): Consumed {
  const names = [place.name, ...(place.alsoNamed ?? [])];
  return {
    consumedHeaders: place.in === "header" ? names.map((name) => name.toLowerCase()) : [],
    consumedQuery: place.in === "query" ? names : [],
    consumedBody: place.in === "body" ? names : [],
  };
}

/**
 * Compiles a function that splits a header or field into items, stores the items in `view` and returns the signatures. Too many
 * items yield no signatures.
 */
function compileItems({ separator, assign, key }: NonNullable<SignaturePlace["items"]>) {
  const separators = new RegExp(`[${RegExp.escape(separator)}]`);
  return (value: string, view: RequestView): readonly string[] => {
    const items = value.split(separators, MAX_ITEMS + 1).map((item) => item.trim());
    const present = items.filter((item) => item !== "");
    if (items.length > MAX_ITEMS) return [];
    const collected = new ValueCollector();
    const signatures: string[] = [];
    present.forEach((item, index) => {
      const at = assign === undefined ? -1 : item.indexOf(assign);
      const name = at < 0 ? String(index) : item.slice(0, at).trim();
      const text = unquoted(item.slice(at + 1).trim());
      collected.add(name, text);
      if (key === undefined || key === name) signatures.push(text);
    });
    view.items = collected.collected;
    return signatures;
  };
}

const unquoted = (text: string): string => (/^"[^"]*"$/.test(text) ? text.slice(1, -1) : text);

/**
 * Decodes a signature. Returns `undefined` if the text is not the canonical encoding of its bytes, although padding is optional.
 */
export function decode(text: string, prefix: string, encoding: Encoding): Buffer | undefined {
  if (!text.startsWith(prefix)) return undefined;
  const encoded = text.slice(prefix.length);
  // Check the text before decoding, because Node ignores invalid characters or stops at them.
  if (encoding === "hex") return HEX.test(encoded) ? Buffer.from(encoded, "hex") : undefined;
  const bytes = Buffer.from(encoded, encoding);
  const isSpelledSo = unpadded(bytes.toString(encoding)) === unpadded(encoded);
  return isSpelledSo && bytes.length > 0 ? bytes : undefined;
}

export function isHashOf(
  body: Buffer,
  text: unknown,
  {
    algorithm,
    encoding,
    prefix = "",
  }: { algorithm: HashName; encoding: Encoding; prefix?: string | undefined },
): boolean {
  const said = typeof text === "string" ? decode(text, prefix, encoding) : undefined;
  return said !== undefined && areBytesEqual(said, createHash(algorithm).update(body).digest());
}

const unpadded = (base64: string): string => base64.replace(/={1,2}$/, "");
