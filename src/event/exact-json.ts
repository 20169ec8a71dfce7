/** `JSON.rawJSON` and source text access in `JSON.parse`. V8 has them, but TypeScript's library does not declare them yet. */
interface ExactJson {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}
const { parse, rawJSON }: ExactJson = JSON as typeof JSON & ExactJson;

/** Parses JSON so that `JSON.stringify` prints every number as in the source, even when a double cannot represent it. */
export const parseExactly = (text: string): unknown =>
  parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && source !== String(value) ? rawJSON(source) : value,
  );
