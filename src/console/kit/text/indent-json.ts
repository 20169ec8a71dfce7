/**
 * JSON text with line breaks and indents. Nothing is parsed and printed again: numbers, escapes and repeated keys stay as they
 * were received. What is no JSON comes out with its own characters all the same.
 */
export function indentJson(text: string): string {
  const out: string[] = [];
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(Math.min(depth, MAX_DEPTH))}`;
  for (const [token] of text.matchAll(TOKENS)) {
    if (token === "{" || token === "[") {
      depth++;
      out.push(token, line());
    } else if (token === "}" || token === "]") {
      depth = Math.max(0, depth - 1);
      // An empty one stays on its line.
      if (out.at(-1)?.startsWith("\n") && /^[{[]$/.test(out.at(-2) ?? "")) out.pop();
      else out.push(line());
      out.push(token);
    } else if (token === ",") out.push(token, line());
    else if (token === ":") out.push(": ");
    else if (!/^\s+$/.test(token)) out.push(token);
  }
  return out.join("");
}

const TOKENS = /"(?:[^"\\]|\\[\s\S])*"?|[{}[\],:]|\s+|[^\s"{}[\],:]+/g;
const MAX_DEPTH = 40;

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
