import { err, ok, type Result } from "./result.ts";

/** One `{{name | filter | filter}}` of a template, without its braces. */
export interface Placeholder {
  readonly name: string;
  readonly filters: readonly string[];
}

/** Renders a template for one context. */
export type Template<C> = (context: C) => string;

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;

/**
 * Compiles a text with placeholders `{{name}}` or `{{name | filter}}`; all else stands for itself, single braces included,
 * so that a template may be JSON. `bind` says once what each placeholder reads, or why there is no such thing.
 *
 * Nothing is evaluated and nothing that is put in is looked at again: a value that holds `{{` stays as it is.
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
    if (name === "" || filters.includes("")) return err(`${match[0]} names nothing`);
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
