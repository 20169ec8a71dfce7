import type { Schemas } from "../../api/client.ts";

/** A pull channel with the state of its source. */
export interface ShownSource {
  readonly channel: Schemas["Channel"];
  readonly source: Schemas["Source"];
}

/** Parses a typed cursor. Returns `undefined` if it is not JSON. */
export function parseCursor(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
