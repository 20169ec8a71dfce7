import type { Schemas } from "../../api/client.ts";

type Sample = Pick<Schemas["Preset"], "sample" | "typePath">;

/** Returns the event type in a provider's sample, or `undefined` if the path to the type is not a plain list of names. */
export function sampleType({ sample, typePath }: Sample): string | undefined {
  const [, root, rest] = /^\$([A-Za-z]\w*)?((?:\.[\w-]+|\['[^']+'\]|\[\d+\])*)$/.exec(typePath ?? "") ?? [];
  if (rest === undefined) return undefined;
  const steps = [...rest.matchAll(/\.([\w-]+)|\['([^']+)'\]|\[(\d+)\]/g)].map(
    ([, name, quoted, index]) => name ?? quoted ?? index ?? "",
  );
  const value = steps.reduce<unknown>(
    (at, step) => (typeof at === "object" && at !== null ? Reflect.get(at, step) : undefined),
    rootOf(sample, root),
  );
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

function rootOf({ headers, query, body }: Sample["sample"], root: string | undefined): unknown {
  if (root === "headers") return headers;
  if (root === "query") return query;
  try {
    return JSON.parse(body);
  } catch {
    return Object.fromEntries(new URLSearchParams(body));
  }
}
