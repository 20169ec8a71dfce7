import { mergeContentTypes, readCharset } from "../../event/content-type.ts";
import type { RawRequest } from "../../event/received.ts";
import type { Values } from "../../event/values.ts";
import { unwrap } from "../../lib/result.ts";
import { parseForm, queryValues } from "../../lib/urlencoded.ts";
import { compileBodyPath } from "./body-path.ts";
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
  #body: { readonly value: unknown; readonly isForm: boolean } | undefined;

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

  #parsed(): { readonly value: unknown; readonly isForm: boolean } {
    this.#body ??= parse(this.request, this.#readAs);
    return this.#body;
  }
}

const NO_ITEMS: Values = Object.freeze(Object.create(null));
const FORM = /^\s*application\/x-www-form-urlencoded\s*(?:;|$)/i;

function parse({ headers, body }: RawRequest, readAs: string | undefined) {
  const type = readAs ?? mergeContentTypes(headers["content-type"]);
  if (typeof type === "string" && FORM.test(type)) {
    const fields = parseForm(body, readCharset(type));
    return { value: fields.ok ? fields.value : undefined, isForm: true };
  }
  try {
    return { value: JSON.parse(body.toString("utf8")), isForm: false };
  } catch {
    return { value: undefined, isForm: false };
  }
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
