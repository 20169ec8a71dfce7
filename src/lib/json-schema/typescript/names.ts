/** Names and texts in generated TypeScript. Schemas are untrusted, so each text is escaped for its place. */

/** Characters that are invisible, or that change the order or meaning of the text around them. */
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Cs}\u2028\u2029]/gu;
const MAX_COMMENT_LENGTH = 300;

const escapeUnits = (text: string): string =>
  [...text.split("")].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join("");

/** Writes a string literal. */
export const writeString = (text: string): string => JSON.stringify(text).replace(INVISIBLE, escapeUnits);

/** Writes the name of a property, in quotes if it is no identifier. */
export const writeKey = (name: string): string =>
  /^[A-Za-z_$][\w$]*$/.test(name) ? name : writeString(name);

/**
 * Writes a comment of one line, or nothing if there is no text. Escapes the end of the comment, and `@` so that the text contains no
 * directive of the compiler.
 */
export function writeComment(text: unknown): string | undefined {
  if (typeof text !== "string") return undefined;
  const line = text
    .slice(0, MAX_COMMENT_LENGTH)
    .replace(INVISIBLE, " ")
    .replace(/\s+/g, " ")
    .trim()
    .replaceAll("*/", "*\\/")
    .replaceAll("@", "\\@");
  return line === "" ? undefined : `/** ${line}${text.length > MAX_COMMENT_LENGTH ? "…" : ""} */`;
}

/** Creates a function that turns words into a unique type name, such as `MainOrderCreated` for `main` and `order.created`. */
export function createNames(reserved: readonly string[]): (...words: readonly string[]) => string {
  const taken = new Set(reserved);
  const counts = new Map<string, number>();
  return (...words) => {
    const parts = words.flatMap((word) => word.slice(0, 80).match(/[A-Za-z0-9]+/g) ?? []);
    const joined = parts.map((part) => part.slice(0, 1).toUpperCase() + part.slice(1)).join("");
    const base = /^[A-Z]/.test(joined) ? joined : `Event${joined}`;
    let count = counts.get(base) ?? 1;
    let name = base;
    while (taken.has(name)) name = `${base}_${++count}`;
    counts.set(base, count);
    taken.add(name);
    return name;
  };
}
