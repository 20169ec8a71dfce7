/** Values of the placeholders in a document, such as `{{params.owner}}`. */
export interface PlaceholderValues {
  /** Returns whether this step fills the placeholder. All other placeholders stay as they are, so that a later step can fill them. */
  readonly has: (name: string) => boolean;
  /** Returns the value of a placeholder, or `undefined` if it has none. */
  readonly get: (name: string) => unknown;
}

const PLACEHOLDER = /\{\{\s*([A-Za-z][A-Za-z0-9_.]*)\s*\}\}/g;

/**
 * Fills the placeholders in all texts of a JSON value. A text that is only a placeholder becomes its value, so that numbers, booleans and
 * lists keep their type. Members and items that name a placeholder without a value are left out.
 */
export function fillPlaceholders(value: unknown, values: PlaceholderValues): unknown {
  if (typeof value === "string") return fillText(value, values);
  if (Array.isArray(value))
    return value.map((one) => fillPlaceholders(one, values)).filter((one) => one !== undefined);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(([name, one]) => [name, fillPlaceholders(one, values)] as const);
  return Object.fromEntries(members.filter(([, one]) => one !== undefined));
}

function fillText(text: string, values: PlaceholderValues): unknown {
  const names = [...text.matchAll(PLACEHOLDER)].map(([, name = ""]) => name).filter(values.has);
  const [only] = names;
  if (names.some((name) => values.get(name) === undefined)) return undefined;
  const filled = text.replace(PLACEHOLDER, (whole, name: string) =>
    values.has(name) ? String(values.get(name)) : whole,
  );
  return only !== undefined && new RegExp(`^${PLACEHOLDER.source}$`).test(text) ? values.get(only) : filled;
}

/** Scheme, host and port of a URL template. The placeholders in them need no encoding, because patterns restrict their values. */
const ORIGIN = /^(?:\{\{\s*[A-Za-z][A-Za-z0-9_.]*\s*\}\}|https?:\/\/[^/?#]*)/;

/**
 * Fills the placeholders of a URL. In the path and query, values are percent-encoded, so that they cannot change the rest of the URL. A
 * placeholder without a value becomes an empty text.
 */
export function fillUrl(url: string, { has, get }: PlaceholderValues): string {
  const origin = ORIGIN.exec(url)?.[0] ?? "";
  const rest = url.slice(origin.length);
  const fill = (text: string, encode: (value: string) => string): string =>
    text.replace(PLACEHOLDER, (whole, name: string) => (has(name) ? encode(String(get(name) ?? "")) : whole));
  const start = fill(origin, (value) => value);
  // The address of a server may end with a slash, and so may a whole address that is a parameter.
  return (rest.startsWith("/") ? start.replace(/\/+$/, "") : start) + fill(rest, encodeURIComponent);
}
