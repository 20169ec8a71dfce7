import { omitValues, type Values } from "../../../event/values.ts";
import { ok, type Result } from "../../../lib/result.ts";
import type { Redact } from "../../../lib/secrets/redact.ts";
import type { FetchedDelivery } from "../../source.ts";
import type { Page, PageFault, PageItem } from "./page.ts";
import type { PageReader } from "./page-reader.ts";
import { replaceWithNulls } from "./replace-with-nulls.ts";
import { redactValues } from "./secrets.ts";

/** Headers that are not copied to a delivery: those about the connection or the transfer, and those with credentials for the client. */
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
  /** Removes the request's secrets from text that the server may have echoed. */
  readonly redact: Redact;
}

/**
 * Builds a delivery that contains some items of a page. Every other item is replaced by `null`. Numbers, whitespace and everything around
 * the items stay as received. The `content-type` header describes the resulting body.
 * Returns `undefined` if `itemsPath` would not find the same items in this body, because the path depends on other items.
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

/**
 * Returns the page's lines, with `null` instead of each line that was not chosen. Empty lines would not count as items, so the chosen items
 * would change their line number.
 */
function keepLines(items: readonly PageItem[], chosen: ReadonlySet<PageItem>): string {
  const lines: string[] = [];
  for (const item of items) {
    if (!chosen.has(item)) continue;
    while (lines.length < item.index) lines.push("null");
    lines.push(item.line ?? "null");
  }
  return `${lines.join("\n")}\n`;
}

const getItemTexts = ({ text }: Page, items: readonly PageItem[]): string[] =>
  items
    .toSorted((a, b) => a.index - b.index)
    .flatMap(({ span }) => (span === undefined ? [] : [text.slice(span.start, span.end)]));

function deliveryHeaders(headers: Values, contentType: string, redact: Redact): Values {
  const redacted = redactValues(omitValues(headers, DROPPED_HEADERS), redact);
  return { ...redacted, "content-type": contentType };
}
