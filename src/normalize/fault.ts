import type { QuarantineReason } from "../event/outcome.ts";

export interface Fault {
  readonly reason: QuarantineReason;
  /** Name of the field that caused the fault, or a JSON Pointer into the payload. */
  readonly path?: string;
  readonly detail: string;
}

/** Truncates a parser's error message, which may quote the whole body. */
const MAX_DETAIL_CHARS = 500;

export const invalidBody = (detail: string): Fault => ({
  reason: "invalid_body",
  detail: shorten(detail, MAX_DETAIL_CHARS),
});

export const shorten = (text: string, maxChars: number): string =>
  text.length > maxChars ? `${text.slice(0, maxChars)}…`.toWellFormed() : text;
