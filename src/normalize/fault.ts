import type { QuarantineReason } from "../event/outcome.ts";

/** Why an item, or a body as a whole, goes no further. */
export interface Fault {
  readonly reason: QuarantineReason;
  /** The setting, or the JSON Pointer into the payload, that it is about. */
  readonly path?: string;
  /** One sentence for the operator. */
  readonly detail: string;
}

export const invalidBody = (detail: string): Fault => ({ reason: "invalid_body", detail });
