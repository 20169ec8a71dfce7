import type { z } from "zod";
import type { TopicEntry } from "../../../bus/topics/topics.ts";
import { parseJson } from "../../../event/parse-json.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { createPathCompiler } from "../../../normalize/paths/jsonpath.ts";
import type { listQuerySchema } from "./schema.ts";

export type EventFilter = (entry: TopicEntry) => boolean;

/**
 * Creates a filter on the id or content of events, or returns `undefined` if the query has none.
 * @throws ApiError 400 for a path that can select several values
 */
export function createEventFilter({
  id,
  path: text,
  value,
}: Pick<z.output<typeof listQuerySchema>, "id" | "path" | "value">): EventFilter | undefined {
  if (text === undefined) return id === undefined ? undefined : (entry) => hasId(entry, id);
  const compiled = createPathCompiler({ syntax: "rfc9535", item: {}, named: new Map() })(text);
  if (!compiled.ok) throw invalidParameters([{ path: "path", message: compiled.error }]);
  const { path } = compiled.value;
  if (path.kind !== "singular")
    throw invalidParameters([
      { path: "path", message: "must select one value, so it can only contain names and indexes" },
    ]);
  const mayMatch = createTextCheck(path.location, value);
  return (entry) => {
    if (id !== undefined && !hasId(entry, id)) return false;
    const { data } = entry.fields;
    if (data === undefined || !mayMatch(data)) return false;
    const found = valueAt(data, path.get);
    return value === undefined ? found !== undefined : formatScalar(found) === value;
  };
}

/**
 * Creates a check that returns false only for JSON texts that cannot have the value at the location. It is much cheaper than parsing. A value
 * of `undefined` stands for any value.
 */
export function createTextCheck(
  location: readonly (string | number)[],
  value: string | undefined,
): (text: string) => boolean {
  const checks = location.filter((step) => typeof step === "string").map(createStringCheck);
  if (value !== undefined) {
    const isString = createStringCheck(value);
    const isOther = createScalarCheck(value);
    checks.push((text) => isString(text) || isOther(text));
  }
  return (text) => checks.every((check) => check(text));
}

/** Matches characters that JSON must or may escape in another way than by `\u`. */
const OFTEN_ESCAPED = /["\\/\p{Cc}]/u;

/** Returns a check whether a JSON text may contain a string. It accepts all texts in which the string could be escaped. */
function createStringCheck(content: string): (text: string) => boolean {
  const quoted = `"${content}"`;
  const escaping = OFTEN_ESCAPED.test(content) ? "\\" : "\\u";
  return (text) => text.includes(quoted) || text.includes(escaping);
}

/** Matches a number with a fraction, an exponent or 16 digits. The value of any other number is formatted as it is written. */
const OTHER_NUMBER = /(?:^|[:,[\s])-?\d+[.eE][\d.eE+-]*(?:[,\]}\s]|$)|\d{16}/;

/** Returns a check whether a JSON text may contain a number, boolean or null that is formatted as this text. */
function createScalarCheck(formatted: string): (text: string) => boolean {
  const isNumber = String(Number(formatted)) === formatted;
  if (!isNumber && !["true", "false", "null"].includes(formatted)) return () => false;
  // The number -0 is formatted as 0.
  const token = new RegExp(`(?:^|[:,[\\s]|-(?=0))${formatted.replace(/[.+]/g, "\\$&")}(?:[,\\]}\\s]|$)`);
  return (text) => (text.includes(formatted) && token.test(text)) || (isNumber && OTHER_NUMBER.test(text));
}

const hasId = ({ entryId, fields }: TopicEntry, id: string): boolean => fields.id === id || entryId === id;

/** Returns the value at a path, or `undefined` if the data has none. */
function valueAt(data: string, get: (root: unknown) => unknown): unknown {
  try {
    return get(parseJson(data));
  } catch {
    return undefined;
  }
}

/** Formats a value as in the parameter `value`. Returns `undefined` for objects and arrays. */
const formatScalar = (value: unknown): string | undefined =>
  value === undefined || (typeof value === "object" && value !== null) ? undefined : String(value);
