import type { TimestampSettings } from "./settings.ts";

const DIGITS = /^\d{1,15}$/;
/** RFC 3339 section 5.6, in capitals as senders write it. */
const RFC_3339 = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?:Z|[+-]\d{2}:\d{2})$/;

/** The time that a text says, in ms since 1970; undefined where it says none. */
export function parseTimestamp(text: string, unit: TimestampSettings["unit"]): number | undefined {
  switch (unit) {
    case "seconds":
      return DIGITS.test(text) ? Number(text) * 1_000 : undefined;
    case "milliseconds":
      return DIGITS.test(text) ? Number(text) : undefined;
    case "rfc3339": {
      const ms = RFC_3339.test(text) ? Date.parse(text) : Number.NaN;
      return Number.isNaN(ms) ? undefined : ms;
    }
    default:
      return unit satisfies never;
  }
}
