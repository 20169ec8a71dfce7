/** Indents JSON without parsing it, so that numbers, escapes and duplicate keys stay as received. Invalid JSON keeps all its characters. */
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
      // Keep an empty object or array on one line.
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
