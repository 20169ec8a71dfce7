type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Applies a JSON Merge Patch (RFC 7396, section 2): merges objects, removes members that are `null`, and replaces all other values.
 * Does not modify its arguments.
 */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const merged = new Map(isObject(target) ? Object.entries(target) : []);
  for (const [name, value] of Object.entries(patch)) {
    if (value === null) merged.delete(name);
    else merged.set(name, mergePatch(merged.get(name), value));
  }
  // `Object.fromEntries` creates a normal member even for the name `__proto__`.
  return Object.fromEntries(merged);
}

const isObject = (value: unknown): value is JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value);
