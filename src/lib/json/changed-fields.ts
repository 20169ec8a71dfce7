import { isDeepStrictEqual } from "node:util";

type Fields = Readonly<Record<string, unknown>>;

/** Maximum number of names in a reported path. For example, `config.dedupe` consists of two names. */
const MAX_DEPTH = 2;

/**
 * Returns the paths of the fields in which two objects differ, such as `title` or `config.dedupe`. Arrays are compared as a whole. Member
 * order is ignored, and `undefined` counts as missing. The result contains no field values.
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
