import { omitValues, type Values } from "../../../event/values.ts";
import { ok, type Result } from "../../../lib/result.ts";
import type { Redact } from "../../../lib/secrets/redact.ts";
import type { FetchedDelivery } from "../../source.ts";
import { getItemTexts, type Page, type PageFault, type PageItem } from "./page.ts";
import type { PageReader } from "./page-reader.ts";
import { replaceWithNulls } from "./replace-with-nulls.ts";
import { redactValues } from "./secrets.ts";

/** Response headers that are not stored with a delivery, because they concern the connection or contain credentials. */
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
  /** Removes the request's secrets from text, because a server may repeat them in its response. */
  readonly redact: Redact;
}

/**
 * Builds a delivery from some items of a page and replaces every other item with `null`. Numbers, whitespace and everything around the
 * items stay as received. Returns `undefined` if `itemsPath` would find other items in the result, because the path depends on other items.
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
 * Returns the lines of the page, with `null` in place of each line that was not chosen. Removing lines instead would change the numbers of
 * the chosen lines.
 */
function keepLines(items: readonly PageItem[], chosen: ReadonlySet<PageItem>): string {
  const lines: string[] = [];
  for (const item of items) {
    if (!chosen.has(item)) continue;
    while (lines.length < item.index) lines.push("null");
    lines.push(item.line ?? "null");
  }
  // Values of a JSON text sequence may contain line breaks. The character before each value then separates the values (RFC 7464).
  const before = lines.some((line) => line.includes("\n")) ? "\x1E" : "";
  return lines.map((line) => `${before}${line}\n`).join("");
}

function deliveryHeaders(headers: Values, contentType: string, redact: Redact): Values {
  const redacted = redactValues(omitValues(headers, DROPPED_HEADERS), redact);
  return { ...redacted, "content-type": contentType };
}
