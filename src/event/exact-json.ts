/** Declares `JSON.rawJSON` and the source text in `JSON.parse`, which V8 supports but TypeScript does not declare yet. */
interface ExactJson {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}
const { parse, rawJSON }: ExactJson = JSON as typeof JSON & ExactJson;

/** Parses JSON and keeps the original text of each number, so that `JSON.stringify` prints numbers exactly as in the source. */
export const parseExactly = (text: string): unknown =>
  parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && source !== String(value) ? rawJSON(source) : value,
  );
