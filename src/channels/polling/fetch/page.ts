import { hash } from "node:crypto";
import type { VerifiedDelivery } from "../../../event/received.ts";
import type { Values } from "../../../event/values.ts";
import { err, ok, type Result } from "../../../lib/result.ts";
import type { OutboundResponse } from "../../../net/outbound.ts";
import { type Body, parseBodyFormat, readBody } from "../../../normalize/body/bodies.ts";
import { MAX_PAGE_ITEMS, splitItems } from "../../../normalize/body/items.ts";
import type { Span } from "../../../normalize/body/payload-slice.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import type { BrokenItem, Item } from "../../../normalize/item.ts";
import { ItemReader } from "../../../normalize/item-reader.ts";
import type { PathBudget } from "../../../normalize/paths/path.ts";
import { replaceWithNulls } from "./replace-with-nulls.ts";

export interface PageItem {
  /** Index of the item among all matches of `itemsPath`, from 0. */
  readonly index: number;
  /** Position of the item in the page's text. `undefined` if the item is a line or the whole page. */
  readonly span: Span | undefined;
  /** Text of the line that contains this item, even if the line is invalid JSON. `undefined` if the page is not split into lines. */
  readonly line: string | undefined;
  /** Returns the string, number or boolean at a path as text. Returns `undefined` if the path selects no value or several values. */
  read(path: RulePath): string | undefined;
  /** Returns the SHA-256 hash of the whole item as 43 base64url characters. */
  contentHash(): string;
}

export interface PageContent {
  readonly kind: Body["kind"];
  readonly text: string;
  /** Content type to use when `text` is parsed again. */
  readonly contentType: string;
  /** The items in the order received, without `null` items. */
  readonly items: readonly PageItem[];
  /** Includes `null` items. */
  readonly itemCount: number;
  /** Returns the first value that a path selects from the page. Numbers are returned as text, and objects and arrays as an empty object. */
  readonly read: (path: RulePath) => unknown;
}

export interface Page extends PageContent {
  /** Response headers with lowercase names. They may still contain secrets. */
  readonly headers: Values;
  /** Resolves a URL from the response against the request URL. Removes query parameters that contain credentials. */
  readonly addressOf: (text: string) => string | undefined;
}

/** Reason why a response cannot be parsed as a page. The message is shown to the channel's owner. */
export interface PageFault {
  readonly code:
    | "content_type"
    | "invalid_body"
    | "items_missing"
    | "items_too_many"
    | "items_overlap"
    | "path_budget";
  readonly message: string;
}

export interface PageFormat {
  readonly decode?: Decoding | undefined;
  readonly itemsPath: RulePath | undefined;
  /** Whether a page without a match for `itemsPath` is an empty page. If false, such a page is an error. */
  readonly itemsOptional: boolean;
}

export const DECODINGS = ["json", "ndjson", "xml"] as const;
export type Decoding = (typeof DECODINGS)[number];

const CONTENT_TYPES: Readonly<Record<Decoding, string>> = {
  json: "application/json",
  ndjson: "application/x-ndjson",
  xml: "application/xml",
};

/** Maximum number of JSON nodes that all paths of one page together may visit. */
const PAGE_PATH_BUDGET = 4_000_000;

/**
 * Parses a response on the calling thread. An empty body is a page without items.
 * @throws PathBudgetError, which reading values from the returned content can also throw
 */
export function readContent(
  answer: Pick<OutboundResponse, "body" | "headers">,
  format: PageFormat,
): Result<PageContent, PageFault> {
  const { headers } = answer;
  const budget: PathBudget = { left: PAGE_PATH_BUDGET };
  const read = readText(answer, format);
  if (!read.ok) return read;
  const { body, isEmpty } = read.value;
  const found = isEmpty ? NO_ITEMS : splitPageItems(body, format, headers, budget);
  if (!found.ok) return found;
  const whole = { index: 0, value: body.value, json: body.json, isBody: true };
  const reader = new ItemReader({ delivery: toVerifiedDelivery(headers, body), body, item: whole }, budget);
  const { kind, text = "" } = body;
  return ok({
    kind,
    text,
    contentType: normalizedContentType(body),
    ...found.value,
    read(path) {
      const [value] = reader.values(path);
      return typeof value === "object" && value !== null ? COMPOUND : value;
    },
  });
}

/** Returns the texts of items in the order in which the page contains them. Items without a span have no text. */
export const getItemTexts = ({ text }: Pick<PageContent, "text">, items: readonly PageItem[]): string[] =>
  items
    .toSorted((a, b) => a.index - b.index)
    .flatMap(({ span }) => (span === undefined ? [] : [text.slice(span.start, span.end)]));

/** Returns the text of one item: a line, a part of the page, or the whole page. */
export const getItemText = ({ text }: Pick<PageContent, "text">, { line, span }: PageItem): string =>
  line ?? (span === undefined ? text : text.slice(span.start, span.end));

/** Replaces every object or array in results, because callers only need texts and numbers. */
const COMPOUND = Object.freeze({});

/** Returns the content type with which to parse the response. The `decode` setting takes precedence over the response header. */
export function resolveContentType(headers: Values, decode: Decoding | undefined): string | undefined {
  const received = [headers["content-type"]].flat()[0];
  const charset = parseBodyFormat(received)?.charset;
  return decode === undefined ? received : `${CONTENT_TYPES[decode]}${charset ? `; charset=${charset}` : ""}`;
}

/** Delivery bodies are UTF-8, so XML without a charset gets `charset=utf-8`. */
function normalizedContentType({ contentType, kind }: Body): string {
  if (kind === "ndjson") return CONTENT_TYPES.ndjson;
  const charset = parseBodyFormat(contentType)?.charset;
  return charset === undefined && kind === "xml" ? `${contentType}; charset=utf-8` : contentType;
}

function readText(
  { body: bytes, headers }: Pick<OutboundResponse, "body" | "headers">,
  { decode, itemsPath }: PageFormat,
): Result<{ readonly body: Body; readonly isEmpty: boolean }, PageFault> {
  const isEmpty = bytes.every(isSpace);
  const told = resolveContentType(headers, decode);
  const kind = isEmpty ? "json" : parseBodyFormat(told)?.kind;
  if (kind !== "json" && kind !== "ndjson" && kind !== "xml") {
    const message = `The server responded with ${describeContentType([headers["content-type"]].flat()[0])}, which is only read if \`decode\` is set`;
    return err({ code: "content_type", message });
  }
  const read = readBody(isEmpty ? NULL : bytes, isEmpty ? undefined : told);
  if (!read.ok) return invalid(read.error.detail);
  if (kind !== "xml" || itemsPath === undefined) return ok({ body: read.value, isEmpty });
  // Items are cut out of JSON text, so XML with an `itemsPath` is first converted to the JSON that paths see.
  const mapped = readBody(Buffer.from(JSON.stringify(read.value.value)), CONTENT_TYPES.json);
  return mapped.ok ? ok({ body: mapped.value, isEmpty }) : invalid(mapped.error.detail);
}

function splitPageItems(
  body: Body,
  { itemsOptional, itemsPath }: PageFormat,
  headers: Values,
  budget: PathBudget,
): Result<FoundItems, PageFault> {
  const split = splitItems(body, itemsPath, budget, MAX_PAGE_ITEMS);
  if (split.kind === "tooMany") {
    return err({ code: "items_too_many", message: `The page has more than ${split.limit} items` });
  }
  if (split.kind === "fault") {
    const { detail, path, reason } = split.fault;
    if (reason !== "invalid_body" || path !== "itemsPath") return invalid(detail);
    // A query path may match any number of values, so no match is an empty list.
    if (itemsOptional || itemsPath?.path.kind === "query") return NO_ITEMS;
    return err({ code: "items_missing", message: `The response is not as expected: ${detail}` });
  }
  const last = split.items.at(-1);
  // An incomplete last line means that the body was cut off, even if the connection was closed normally.
  if (last !== undefined && "fault" in last)
    return invalid(`its last line is incomplete or invalid: ${last.fault.detail}`);
  const delivery = toVerifiedDelivery(headers, body);
  const items = split.items.flatMap((item): PageItem[] => {
    if ("fault" in item) return [brokenItem(item)];
    if (item.value === null) return [];
    return [readItem(item, body, new ItemReader({ delivery, body, item }, budget))];
  });
  return isSeparable(body, itemsPath, items)
    ? ok({ items, itemCount: split.items.length })
    : err({
        code: "items_overlap",
        message: "`itemsPath` must not select property names or values within other selected values",
      });
}

type FoundItems = Pick<Page, "items" | "itemCount">;

const NO_ITEMS = ok<FoundItems>({ items: [], itemCount: 0 });

/** Returns whether every item can be cut out of the page. That is impossible if one item contains another item. */
function isSeparable({ json, text = "" }: Body, itemsPath: RulePath | undefined, items: readonly PageItem[]) {
  if (json === undefined || itemsPath?.path.kind !== "query") return true;
  const spans = items.flatMap(({ span }) => span ?? []);
  return spans.length === items.length && replaceWithNulls(text, [], spans) !== undefined;
}

const brokenItem = ({ index, text }: BrokenItem): PageItem => ({
  index,
  span: undefined,
  line: text,
  read: () => undefined,
  contentHash: () => hash("sha256", text, "base64url"),
});

const readItem = ({ index, isBody, json }: Item, { kind }: Body, reader: ItemReader): PageItem => ({
  index,
  span: isBody || kind === "ndjson" ? undefined : json?.span,
  line: kind === "ndjson" ? json?.text : undefined,
  read(path) {
    const [value, ...more] = reader.values(path);
    if (more.length > 0 || value === "") return undefined;
    return typeof value === "string" || typeof value === "boolean" ? String(value) : undefined;
  },
  contentHash: () => reader.wholeItem().hash,
});

const toVerifiedDelivery = (headers: Values, body: Body): VerifiedDelivery => ({
  method: "GET",
  headers,
  query: {},
  body: body.bytes,
  arrivedAtMs: 0,
});

const NULL = Buffer.from("null");

const isSpace = (byte: number): boolean => byte === 32 || (byte >= 9 && byte <= 13);

const invalid = (detail: string): Result<never, PageFault> =>
  err({ code: "invalid_body", message: `The response cannot be parsed: ${detail}` });

/** Limits the quoted text to 100 characters, because the server controls its length. */
const describeContentType = (contentType: string | undefined): string =>
  contentType === undefined ? "no content type" : JSON.stringify(contentType.slice(0, 100));
