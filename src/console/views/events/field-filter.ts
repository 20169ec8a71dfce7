import { parseSimplePath } from "../../kit/text/simple-path.ts";

/** Filter by a field of the event data. */
export interface FieldFilter {
  /** JSONPath of the field: `$.order.total`. */
  readonly path: string;
  /** Required value. `undefined` if the field only has to exist. */
  readonly value: string | undefined;
  readonly fits: (data: unknown) => boolean;
}

/**
 * Parses the text of a filter: `order.total = 12` requires this value, and `items.0.sku` requires only that the field exists. A text with
 * brackets, such as `$['first name'] = Ada`, is a JSONPath.
 *
 * @returns `undefined` if the text names no field
 */
export function parseFieldFilter(text: string): FieldFilter | undefined {
  const [, left = "", , right] = /^\s*([^=]*?)\s*(=\s*(.*?)\s*)?$/su.exec(text) ?? [];
  const value = right?.replace(/^"(.*)"$/s, "$1");
  if (/^\$.*\[/s.test(left)) {
    const parsed = parseSimplePath(left);
    // No event fits any other path, such as one with a filter, which the API rejects.
    const steps = parsed?.root === "" ? parsed.steps : undefined;
    return { path: left, value, fits: (data) => steps !== undefined && hasField(data, steps, value) };
  }
  const names = left
    .replace(/^\$\.?/, "")
    .split(".")
    .filter((name) => name !== "");
  if (names.length === 0) return undefined;
  return {
    path: `$${names.map(toSegment).join("")}`,
    value,
    fits: (data) => hasField(data, names, value),
  };
}

/** Whether the data has a field at these names, with this value if one is required. */
function hasField(data: unknown, names: readonly string[], value: string | undefined): boolean {
  let at = data;
  for (const name of names) {
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return false;
    at = (at as Readonly<Record<string, unknown>>)[name];
  }
  return value === undefined || (typeof at === "string" ? at : JSON.stringify(at)) === value;
}

/** Formats a name or an index as a segment of a JSONPath (RFC 9535). */
function toSegment(name: string): string {
  if (/^(0|[1-9]\d*)$/.test(name)) return `[${name}]`;
  return /^[a-z_]\w*$/i.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
