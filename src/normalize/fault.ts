import type { QuarantineReason } from "../event/outcome.ts";

export interface Fault {
  readonly reason: QuarantineReason;
  /** Name of the config field that caused the error, or a JSON Pointer into the payload. */
  readonly path?: string;
  readonly detail: string;
  /** How the sender can fix the fault. It is also part of `detail`, and contains no data. */
  readonly hint?: string;
  /** Set if the delivery may be a heartbeat of a stream. Only the newest of these are stored, whatever the config says. */
  readonly isHeartbeat?: true;
}

/**
 * Maximum length of a parser error message, in characters. Longer messages are truncated, because they may quote the whole body.
 */
const MAX_DETAIL_CHARS = 500;

export const invalidBody = (detail: string): Fault => ({
  reason: "invalid_body",
  detail: shorten(detail, MAX_DETAIL_CHARS),
});

export const shorten = (text: string, maxChars: number): string =>
  text.length > maxChars ? `${text.slice(0, maxChars)}…`.toWellFormed() : text;
