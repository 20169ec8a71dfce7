/** A function of the engine that the compiler does not know yet. */
interface ExactJson {
  rawJSON(text: string): unknown;
  parse(
    text: string,
    reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown,
  ): unknown;
}
const { parse, rawJSON }: ExactJson = JSON as typeof JSON & ExactJson;

/** The value of a JSON text; numbers that a double does not print as they were spelled stay as text, for `JSON.stringify`. */
export const parseExactly = (text: string): unknown =>
  parse(text, (_, value, { source }) =>
    typeof value === "number" && source !== undefined && source !== String(value) ? rawJSON(source) : value,
  );
