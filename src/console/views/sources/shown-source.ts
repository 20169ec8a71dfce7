import type { Schemas } from "../../api/client.ts";

/** A channel that fetches, with how its source stands. */
export interface ShownSource {
  readonly channel: Schemas["Channel"];
  readonly source: Schemas["Source"];
}

/** A cursor as it was typed; undefined: no JSON. */
export function parseCursor(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
