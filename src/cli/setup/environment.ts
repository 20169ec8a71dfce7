import { formatPath } from "../../http/findings.ts";
import type { Finding } from "../../lib/errors.ts";

export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * Puts the environment's texts where `{"$env": "NAME"}` stands; empty counts as unset. The value of a variable is never told; the
 * findings tell names that have none.
 *
 * @param path where the value stands in the file
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
      note(at, 'must be {"$env": "NAME"} and nothing else');
      return undefined;
    }
    const text = env[name];
    if (!text) note(at, `needs ${name}, which is not set in the environment`);
    return text;
  };
  return { value: resolve(value, path), findings };
}

/** True where the environment has a part in the value: in each of its items, if it is a list. */
export function comesFromEnv(value: unknown): boolean {
  if (Array.isArray(value)) return value.every(comesFromEnv);
  if (typeof value !== "object" || value === null) return false;
  return Object.hasOwn(value, "$env") || Object.values(value).some(comesFromEnv);
}
