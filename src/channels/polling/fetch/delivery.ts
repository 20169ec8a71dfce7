import { omitValues, type Values } from "../../../event/values.ts";
import { ok, type Result } from "../../../lib/result.ts";
import type { Redact } from "../../../lib/secrets/redact.ts";
import type { FetchedDelivery } from "../../source.ts";
import type { Page, PageFault, PageItem } from "./page.ts";
import type { PageReader } from "./page-reader.ts";
import { replaceWithNulls } from "./replace-with-nulls.ts";
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
  readonly reader: Pick<PageReader, "findsSameItems">;
  readonly arrivedAtMs: number;
  /** Takes what is secret of the request out of a text that the server may have repeated. */
  readonly redact: Redact;
}

/**
 * A page as one delivery of some of its items: the page as it came, but with `null` in the place of every other item. Numbers,
 * whitespace and all around the items stay as received. Its `content-type` says how the body is to be read now.
 *
 * Undefined where `itemsPath`, run over it, would not find these items again: it goes by what the other items are.
 *
 * @throws UnavailableError
 */
export async function createPageDelivery(
  page: Page,
  items: readonly PageItem[],
  { arrivedAtMs, reader, redact }: DeliveryOptions,
): Promise<Result<FetchedDelivery | undefined, PageFault>> {
  const text = keepOnly(page, items);
  if (text === undefined) return ok(undefined);
  const isSame = await reader.findsSameItems(text, getItemTexts(page, items));
  if (!isSame.ok) return isSame;
  if (!isSame.value) return ok(undefined);
  const headers = deliveryHeaders(page.headers, page.contentType, redact);
  return ok({ headers, body: Buffer.from(redact(text)), arrivedAtMs });
}

function keepOnly({ items, kind, text }: Page, kept: readonly PageItem[]): string | undefined {
  const chosen = new Set(kept);
  if (kind === "ndjson") return keepLines(items, chosen);
  const spansOf = (isKept: boolean) =>
    items.filter((item) => chosen.has(item) === isKept).flatMap(({ span }) => span ?? []);
  return replaceWithNulls(text, spansOf(false), spansOf(true));
}

/** Every item on the line of its place; empty lines are no items. */
function keepLines(items: readonly PageItem[], chosen: ReadonlySet<PageItem>): string {
  const lines: string[] = [];
  for (const item of items) {
    if (!chosen.has(item)) continue;
    while (lines.length < item.index) lines.push("null");
    lines.push(item.line ?? "null");
  }
  return `${lines.join("\n")}\n`;
}

/** In the order in which they stand on the page. */
const getItemTexts = ({ text }: Page, items: readonly PageItem[]): string[] =>
  items
    .toSorted((a, b) => a.index - b.index)
    .flatMap(({ span }) => (span === undefined ? [] : [text.slice(span.start, span.end)]));

function deliveryHeaders(headers: Values, contentType: string, redact: Redact): Values {
  const told = redactValues(omitValues(headers, DROPPED_HEADERS), redact);
  return { ...told, "content-type": contentType };
}
