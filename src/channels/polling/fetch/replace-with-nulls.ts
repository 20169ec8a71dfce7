import type { Span } from "../../../normalize/body/payload-slice.ts";

/**
 * The text with `null` in the place of the values that are `gone`; undefined where one of `gone` or `kept` stands inside another,
 * so that not each can be there or be gone by itself.
 */
export function replaceWithNulls(
  text: string,
  gone: readonly Span[],
  kept: readonly Span[] = [],
): string | undefined {
  const isGone = new Set(gone);
  const parts: string[] = [];
  let at = 0;
  let end = 0;
  for (const span of [...isGone, ...kept].sort((a, b) => a.start - b.start)) {
    if (span.start < end) return undefined;
    end = span.end;
    if (!isGone.has(span)) continue;
    parts.push(text.slice(at, span.start), "null");
    at = end;
  }
  parts.push(text.slice(at));
  return parts.join("");
}
