import { hasEscapedName, readValidJson } from "./parse-json.ts";

/** Declares `JSON.rawJSON` and the source text in `JSON.parse`, which V8 supports but TypeScript does not declare yet. */
interface ExactJson {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}
const { parse, rawJSON }: ExactJson = JSON as typeof JSON & ExactJson;

const keepExact = (source: string, value: number): unknown =>
  source === String(value) ? value : rawJSON(source);

/**
 * Parses JSON and keeps the original text of each number, so that `JSON.stringify` prints numbers exactly as in the source. Like
 * `parseJson`, it is not affected by V8's bug with escaped names.
 */
export function parseExactly(text: string): unknown {
  const value = parse(text, (_, part, { source }) =>
    typeof part === "number" && source !== undefined ? keepExact(source, part) : part,
  );
  return hasEscapedName(text) ? readValidJson(text, (source) => keepExact(source, Number(source))) : value;
}
