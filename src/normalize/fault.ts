import type { QuarantineReason } from "../event/outcome.ts";

/** Reason why an item or a whole body cannot become events. */
export interface Fault {
  readonly reason: QuarantineReason;
  /** Name of the setting, or JSON Pointer into the payload, that caused the fault. */
  readonly path?: string;
  /** One sentence for the operator. */
  readonly detail: string;
}

/** Maximum length of a parser's message, which may quote the whole body. */
const MAX_DETAIL_CHARS = 500;

export const invalidBody = (detail: string): Fault => ({
  reason: "invalid_body",
  detail: shorten(detail, MAX_DETAIL_CHARS),
});

export const shorten = (text: string, maxChars: number): string =>
  text.length > maxChars ? `${text.slice(0, maxChars)}…`.toWellFormed() : text;
