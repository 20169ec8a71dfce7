import type { QuarantineReason } from "../event/outcome.ts";

/** Why an item, or a body as a whole, goes no further. */
export interface Fault {
  readonly reason: QuarantineReason;
  /** The setting, or the JSON Pointer into the payload, that it is about. */
  readonly path?: string;
  /** One sentence for the operator. */
  readonly detail: string;
}

/** Of what a parser says of a body: it may quote all of it. */
const MAX_DETAIL_CHARS = 500;

export const invalidBody = (detail: string): Fault => ({
  reason: "invalid_body",
  detail: shorten(detail, MAX_DETAIL_CHARS),
});

export const shorten = (text: string, maxChars: number): string =>
  text.length > maxChars ? `${text.slice(0, maxChars)}…`.toWellFormed() : text;
