import { err, ok, type Result } from "./result.ts";

/** A parsed placeholder of a template, such as `{{name | filter | filter}}`. */
export interface Placeholder {
  readonly name: string;
  readonly filters: readonly string[];
}

export type Template<C> = (context: C) => string;

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;

/**
 * Compiles a text with placeholders `{{name}}` or `{{name | filter}}`. All other text is literal, including single braces, so that
 * a template can be JSON. Inserted values are never evaluated, even if they contain `{{`.
 *
 * @param bind called once per placeholder. Returns a function that reads the value of the placeholder, or an error message
 */
export function compileTemplate<C>(
  text: string,
  bind: (placeholder: Placeholder) => Result<(context: C) => string, string>,
): Result<Template<C>, string> {
  const parts: ((context: C) => string)[] = [];
  let end = 0;
  for (const match of text.matchAll(PLACEHOLDER)) {
    const before = text.slice(end, match.index);
    if (before.includes("{{")) return err(UNCLOSED);
    if (before !== "") parts.push(() => before);
    const [name = "", ...filters] = (match[1] ?? "").split("|").map((word) => word.trim());
    if (name === "" || filters.includes("")) return err(`${match[0]} has an empty name or filter`);
    const bound = bind({ name, filters });
    if (!bound.ok) return err(`${match[0]}: ${bound.error}`);
    parts.push(bound.value);
    end = match.index + match[0].length;
  }
  const rest = text.slice(end);
  if (rest.includes("{{")) return err(UNCLOSED);
  if (rest !== "") parts.push(() => rest);
  return ok((context) => {
    let rendered = "";
    for (const part of parts) rendered += part(context);
    return rendered;
  });
}

const UNCLOSED = "has {{ without }}";
