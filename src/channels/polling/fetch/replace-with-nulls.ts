import type { Span } from "../../../normalize/body/payload-slice.ts";

/**
 * Replaces values in JSON text with `null`. Returns `undefined` if the given values overlap, because they cannot be separated.
 *
 * @param gone positions of the values to replace
 * @param kept positions of the values to keep
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
