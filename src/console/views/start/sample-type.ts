import type { Schemas } from "../../api/client.ts";
import { parseSimplePath, readFirst } from "../../kit/text/simple-path.ts";

type Sample = Pick<Schemas["Preset"], "sample" | "typePath">;

/** Returns the event type in a provider's sample, or `undefined` if the path to the type is not a plain list of names. */
export function sampleType({ sample, typePath }: Sample): string | undefined {
  const path = parseSimplePath(typePath ?? "");
  const value = path && readFirst(rootOf(sample, path.root), path.steps);
  return typeof value === "string" || typeof value === "number" ? String(value) : undefined;
}

function rootOf({ headers, query, body }: Sample["sample"], root: string): unknown {
  if (root === "headers") return headers;
  if (root === "query") return query;
  try {
    return JSON.parse(body);
  } catch {
    return Object.fromEntries(new URLSearchParams(body));
  }
}
