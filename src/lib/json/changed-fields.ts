import { isDeepStrictEqual } from "node:util";

type Fields = Readonly<Record<string, unknown>>;

/** How far down fields are told apart: `config.dedupe`, and no further. */
const MAX_DEPTH = 2;

/**
 * The names of the fields by which two objects differ, as paths: `title`, `config.dedupe`. Arrays count as a whole, the order
 * of members does not matter, a field that is undefined is none. Values are never told.
 */
export function changedFields(before: Fields, after: Fields): readonly string[] {
  return changed(before, after, 1);
}

function changed(before: Fields, after: Fields, depth: number): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.flatMap((name) => {
    const [old, fresh] = [own(before, name), own(after, name)];
    if (isDeepStrictEqual(old, fresh)) return [];
    if (depth === MAX_DEPTH || !isFields(old) || !isFields(fresh)) return [name];
    return changed(old, fresh, depth + 1).map((inner) => `${name}.${inner}`);
  });
}

const own = (fields: Fields, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;

const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);
