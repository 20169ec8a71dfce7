const STEP = /\.([A-Za-z_][A-Za-z0-9_-]*)|\['([^']+)'\]|\[(\d+)\]/g;

/** Returns the value at a path of names and indexes, such as `$.data[0].id`. Returns `undefined` if a step is missing. */
export function readPath(value: unknown, path: string): unknown {
  let found = value;
  for (const [, dotted, quoted, index] of path.matchAll(STEP)) {
    const name = dotted ?? quoted ?? index ?? "";
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Readonly<Record<string, unknown>>)[name];
  }
  return found;
}

/** Returns a text or number as text. Returns `undefined` for all other values and for an empty text. */
export function readText(value: unknown, path: string | undefined): string | undefined {
  if (path === undefined) return undefined;
  const found = readPath(value, path);
  return (typeof found === "string" && found !== "") || typeof found === "number" ? String(found) : undefined;
}

/** Returns an id. If the provider identifies its objects by URLs, the id is the last part of the path. */
export function readId(value: unknown, path: string | undefined): string | undefined {
  const text = readText(value, path);
  return text !== undefined && /^https?:/.test(text) ? URL.parse(text)?.pathname.split("/").at(-1) : text;
}

/** Numbers from here on are times in ms since 1970, and smaller ones are times in seconds. */
const EPOCH_MS_FROM = 100_000_000_000;

/** Returns a time in ms since 1970. Accepts ISO 8601 text, and numbers of seconds or milliseconds since 1970. */
export function readTimeMs(value: unknown, path: string | undefined): number | undefined {
  const text = readText(value, path);
  if (text === undefined) return undefined;
  const ms = /^\d+$/.test(text)
    ? Number(text) * (Number(text) < EPOCH_MS_FROM ? 1_000 : 1)
    : Date.parse(text);
  return Number.isNaN(ms) ? undefined : ms;
}
