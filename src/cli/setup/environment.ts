import type { Finding } from "../../lib/errors.ts";
import { formatPath } from "../../lib/findings.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Replaces each `{"$env": "NAME"}` in a value by that environment variable. An empty variable counts as unset. Errors name unset variables
 * and never contain values.
 * @param path path of the value in the config file
 */
export function resolveEnv(
  value: unknown,
  env: Variables,
  path: readonly PropertyKey[],
): { readonly value: unknown; readonly findings: readonly Finding[] } {
  const findings: Finding[] = [];
  const note = (at: readonly PropertyKey[], message: string): void => {
    findings.push({ path: formatPath(at), message });
  };
  const resolve = (part: unknown, at: readonly PropertyKey[]): unknown => {
    if (Array.isArray(part)) return part.map((item, index) => resolve(item, [...at, index]));
    if (typeof part !== "object" || part === null) return part;
    if (!Object.hasOwn(part, "$env")) {
      return Object.fromEntries(
        Object.entries(part).map(([name, item]) => [name, resolve(item, [...at, name])]),
      );
    }
    const { $env: name, ...others } = part as { readonly $env: unknown };
    if (typeof name !== "string" || Object.keys(others).length > 0) {
      note(at, 'must be {"$env": "NAME"} without other members');
      return undefined;
    }
    const text = env[name];
    if (!text) note(at, `requires the environment variable ${name}, which is not set`);
    return text;
  };
  return { value: resolve(value, path), findings };
}

/**
 * Returns whether a value comes from environment variables. For an object, one such member is enough, but in a list, every item
 * must be one.
 */
export function comesFromEnv(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(comesFromEnv);
  if (typeof value !== "object" || value === null) return false;
  return Object.hasOwn(value, "$env") || Object.values(value).some(comesFromEnv);
}
