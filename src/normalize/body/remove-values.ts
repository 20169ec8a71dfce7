import { isEscaped, skipSpace } from "../../event/json-tokens.ts";
import type { Span } from "./payload-slice.ts";

/**
 * Returns a JSON text without some of its values. Each is removed with its member name and one comma, so that the result equals the text
 * of an object that never had the member. Ranges may be nested.
 *
 * @param spans ranges of values in the text
 */
export function removeValues(text: string, spans: readonly Span[]): string {
  const pieces: string[] = [];
  let from = 0;
  for (const { start, end } of [...spans].sort((a, b) => a.start - b.start)) {
    // The range is inside of a value that was removed before.
    if (start < from) continue;
    const memberStart = findMemberStart(text, start);
    if (memberStart > from) pieces.push(text.slice(from, memberStart));
    const next = skipSpace(text, end);
    if (text[next] === ",") from = skipSpace(text, next + 1);
    else {
      const before = pieces.pop() ?? "";
      const trimmed = before.trimEnd();
      pieces.push(trimmed.endsWith(",") ? trimmed.slice(0, -1) : before);
      from = end;
    }
  }
  pieces.push(text.slice(from));
  return pieces.join("");
}

/** Returns where the member of a value starts: at its name, or at the value if it is an element of an array. */
function findMemberStart(text: string, valueStart: number): number {
  const colon = skipSpaceBackwards(text, valueStart - 1);
  if (text[colon] !== ":") return valueStart;
  const close = skipSpaceBackwards(text, colon - 1);
  let open = text.lastIndexOf('"', close - 1);
  while (isEscaped(text, open)) open = text.lastIndexOf('"', open - 1);
  return open;
}

function skipSpaceBackwards(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= 32) at--;
  return at;
}
