export const TIMESTAMP_FORMATS = ["iso", "epochSeconds", "epochMillis", "rfc2822"] as const;
export type TimestampFormat = (typeof TIMESTAMP_FORMATS)[number];

/** Timestamps of RFC 3339, section 5.6. Also accepts a date only, missing seconds, and a missing zone (read as UTC). */
const ISO =
  /^(\d{4}-\d{2}-\d{2})(?:[Tt ](\d{2}:\d{2})(?::(\d{2})(?:[.,](\d{1,12}))?)?\s?([Zz]|[+-]\d{2}(?::?\d{2})?)?)?$/;
/** Timestamps of RFC 5322, section 3.3, with the zone names that its section 4.3 defines. */
const RFC2822 =
  /^(?:[A-Za-z]{3}, ?)?\d{1,2} [A-Za-z]{3} \d{4} \d{2}:\d{2}(?::\d{2})? (?:[+-]\d{4}|GMT|UTC?|Z|[ECMP][SD]T)$/;
const NUMBER = /^[+-]?\d{1,20}(?:\.\d{1,20})?$/;
/** Largest time that a `Date` can represent (ECMA-262), in ms before or after the Unix epoch. */
const MAX_MS = 8.64e15;

/**
 * Parses a timestamp to ms since the Unix epoch, or returns `undefined`. Cuts off fractions, because rounding up would make a later request
 * miss items.
 */
export function parseTimestamp(text: string, format: TimestampFormat): number | undefined {
  switch (format) {
    case "iso":
      return parseIso(text);
    case "rfc2822":
      return RFC2822.test(text) ? inRange(Date.parse(text)) : undefined;
    case "epochSeconds":
      return NUMBER.test(text) ? inRange(Math.floor(Number(text) * 1000)) : undefined;
    case "epochMillis":
      return NUMBER.test(text) ? inRange(Math.floor(Number(text))) : undefined;
    default:
      return format satisfies never;
  }
}

function parseIso(text: string): number | undefined {
  const match = ISO.exec(text);
  if (match === null) return undefined;
  const [, date, time, seconds = "00", fraction = "", zone = "Z"] = match;
  if (time === undefined) return inRange(Date.parse(`${date}T00:00:00.000Z`));
  // `Date` has no leap seconds, so second 60 is read as second 59.
  const second = seconds === "60" ? "59" : seconds;
  return inRange(
    Date.parse(`${date}T${time}:${second}.${fraction.slice(0, 3).padEnd(3, "0")}${zoneOf(zone)}`),
  );
}

function zoneOf(zone: string): string {
  if (/^z$/i.test(zone)) return "Z";
  const digits = zone.slice(1).replace(":", "").padEnd(4, "0");
  return `${zone.charAt(0)}${digits.slice(0, 2)}:${digits.slice(2)}`;
}

const inRange = (ms: number): number | undefined => (Math.abs(ms) <= MAX_MS ? ms : undefined);
