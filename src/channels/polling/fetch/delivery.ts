import { omitValues, type Values } from "../../../event/values.ts";
import type { Redact } from "../../../lib/secrets/redact.ts";
import { bodyFormatOf, readBody } from "../../../normalize/body/bodies.ts";
import { MAX_PAGE_ITEMS, splitItems } from "../../../normalize/body/items.ts";
import type { RulePath } from "../../../normalize/compile.ts";
import type { FetchedDelivery } from "../../source.ts";
import type { Page, PageItem } from "./page.ts";
import { redactValues } from "./secrets.ts";

/** Of the connection or the transfer, or a credential that the server gives to its caller. */
const DROPPED_HEADERS: ReadonlySet<string> = new Set([
  "authentication-info",
  "connection",
  "content-encoding",
  "content-length",
  "content-md5",
  "keep-alive",
  "proxy-authenticate",
  "set-cookie",
  "set-cookie2",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "www-authenticate",
]);

export interface DeliveryOptions {
  readonly itemsPath: RulePath | undefined;
  readonly arrivedAtMs: number;
  /** Takes what is secret of the request out of a text that the server may have repeated. */
  readonly redact: Redact;
}

/**
 * A page as one delivery of some of its items: the page as it came, but with `null` in the place of every other item. Numbers,
 * whitespace and all around the items stay as received. Its `content-type` says how the body is to be read now.
 *
 * Undefined where `itemsPath`, run over it, would not find these items again: it goes by what the other items are.
 */
export function deliveryOf(
  page: Page,
  items: readonly PageItem[],
  { arrivedAtMs, itemsPath, redact }: DeliveryOptions,
): FetchedDelivery | undefined {
  const text = restrict(page, items);
  if (text === undefined) return undefined;
  const contentType = page.body.kind === "ndjson" ? "application/x-ndjson" : contentTypeOf(page);
  if (itemsPath?.path.kind === "query" && !findsAgain(text, items, itemsPath)) return undefined;
  const headers = headersOf(page.headers, contentType, redact);
  return { headers, body: Buffer.from(redact(text)), arrivedAtMs };
}

/** As the bodies of deliveries are: in UTF-8. */
function contentTypeOf({ body }: Page): string {
  const charset = bodyFormatOf(body.contentType)?.charset;
  return charset === undefined && body.kind === "xml"
    ? `${body.contentType}; charset=utf-8`
    : body.contentType;
}

function restrict({ body, items }: Page, kept: readonly PageItem[]): string | undefined {
  const chosen = new Set(kept);
  if (body.kind === "ndjson") return linesOf(items, chosen);
  const { json, text = "" } = body;
  const partsOf = (isKept: boolean) =>
    items.filter((item) => chosen.has(item) === isKept).flatMap(({ part }) => part ?? []);
  return json === undefined ? text : json.blank(partsOf(false), partsOf(true));
}

/** Every item on the line of its place; empty lines are no items. */
function linesOf(items: readonly PageItem[], chosen: ReadonlySet<PageItem>): string {
  const lines: string[] = [];
  for (const item of items) {
    if (!chosen.has(item)) continue;
    while (lines.length < item.index) lines.push("null");
    lines.push(item.broken ?? item.part?.text ?? "null");
  }
  return `${lines.join("\n")}\n`;
}

function findsAgain(text: string, items: readonly PageItem[], itemsPath: RulePath): boolean {
  const read = readBody(Buffer.from(text), undefined);
  if (!read.ok) return false;
  const split = splitItems(read.value, itemsPath, { left: Number.POSITIVE_INFINITY }, MAX_PAGE_ITEMS);
  if (split.kind !== "items") return false;
  // A filter may pass over the gaps, so that an item has another place.
  const found = split.items.flatMap((item) =>
    "value" in item && item.value !== null ? [item.json?.text] : [],
  );
  const wanted = items.toSorted((a, b) => a.index - b.index).map(({ part }) => part?.text);
  return found.length === wanted.length && found.every((each, index) => each === wanted[index]);
}

function headersOf(headers: Values, contentType: string, redact: Redact): Values {
  const told = redactValues(omitValues(headers, DROPPED_HEADERS), redact);
  return { ...told, "content-type": contentType };
}
