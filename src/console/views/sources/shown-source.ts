import type { Schemas } from "../../api/client.ts";

/** A channel that fetches events, with the state of its source. */
export interface ShownSource {
  readonly channel: Schemas["Channel"];
  readonly source: Schemas["Source"];
}

/** Parses a cursor that the user has typed. Returns `undefined` if the text is not JSON. */
export function parseCursor(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return undefined;
  }
}
