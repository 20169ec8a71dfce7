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
 * brackets, such as `$['first name'] = Ada`, is a JSONPath and fits only in a search by the API.
 *
 * @returns `undefined` if the text names no field
 */
export function parseFieldFilter(text: string): FieldFilter | undefined {
  const [, left = "", , right] = /^\s*([^=]*?)\s*(=\s*(.*?)\s*)?$/su.exec(text) ?? [];
  const value = right?.replace(/^"(.*)"$/s, "$1");
  if (/^\$.*\[/s.test(left)) return { path: left, value, fits: () => false };
  const names = left
    .replace(/^\$\.?/, "")
    .split(".")
    .filter((name) => name !== "");
  if (names.length === 0) return undefined;
  return {
    path: `$${names.map(toSegment).join("")}`,
    value,
    fits(data) {
      let at = data;
      for (const name of names) {
        if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return false;
        at = (at as Readonly<Record<string, unknown>>)[name];
      }
      return value === undefined || (typeof at === "string" ? at : JSON.stringify(at)) === value;
    },
  };
}

/** Formats a name or an index as a segment of a JSONPath (RFC 9535). */
function toSegment(name: string): string {
  if (/^(0|[1-9]\d*)$/.test(name)) return `[${name}]`;
  return /^[a-z_]\w*$/i.test(name) ? `.${name}` : `[${JSON.stringify(name)}]`;
}
