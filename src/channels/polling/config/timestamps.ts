import { parseTimestamp, TIMESTAMP_FORMATS, type TimestampFormat } from "../../../lib/timestamps.ts";

/** Formats in which requests can send a time. */
export const INSTANT_FORMATS = [...TIMESTAMP_FORMATS, "isoSeconds", "date"] as const;

/** Formats a time for a request to a server. Rounds down in formats that have only whole seconds. */
export function formatInstant(ms: number, format: (typeof INSTANT_FORMATS)[number]): string {
  switch (format) {
    case "iso":
      return new Date(ms).toISOString();
    case "isoSeconds":
      return new Date(ms).toISOString().replace(/\.\d+/, "");
    case "date":
      return new Date(ms).toISOString().slice(0, -14);
    case "rfc2822":
      return new Date(ms).toUTCString();
    case "epochSeconds":
      return String(Math.floor(ms / 1000));
    case "epochMillis":
      return String(ms);
    default:
      return format satisfies never;
  }
}

const PATTERN_FIELDS: Readonly<Record<string, (time: Date) => string>> = {
  yyyy: (time) => String(time.getUTCFullYear()).padStart(4, "0"),
  MM: (time) => padTwo(time.getUTCMonth() + 1),
  dd: (time) => padTwo(time.getUTCDate()),
  HH: (time) => padTwo(time.getUTCHours()),
  mm: (time) => padTwo(time.getUTCMinutes()),
  ss: (time) => padTwo(time.getUTCSeconds()),
  SSS: (time) => String(time.getUTCMilliseconds()).padStart(3, "0"),
};
const PATTERN_PART = new RegExp(`${Object.keys(PATTERN_FIELDS).join("|")}|'[^']*'|[^A-Za-z']`, "g");

const padTwo = (value: number): string => String(value).padStart(2, "0");

/** Formats a time in UTC by a pattern such as `yyyy-MM-dd HH:mm:ss`. Text in single quotes is literal. */
export function formatPattern(ms: number, pattern: string): string {
  const time = new Date(ms);
  return pattern.replace(
    PATTERN_PART,
    (part) => PATTERN_FIELDS[part]?.(time) ?? (part.startsWith("'") ? part.slice(1, -1) : part),
  );
}

export function findPatternError(pattern: string): string | undefined {
  const unknown = pattern.replace(PATTERN_PART, "");
  const allowed = Object.keys(PATTERN_FIELDS).join(", ");
  return unknown === ""
    ? undefined
    : `contains "${unknown}"; allowed are ${allowed}, and other letters only in single quotes`;
}

const UNITS_MS = [86_400_000, 3_600_000, 60_000, 1_000];

/**
 * Rounds a time down to the precision of the given timestamps: to the day if all of them are dates, or else to the hour, minute or second.
 */
export function roundDownLike(ms: number, texts: readonly string[], format: TimestampFormat): number {
  let unitMs: number | undefined;
  let zoneMs = 0;
  for (const text of texts) {
    const instant = parseTimestamp(text, format);
    if (instant === undefined) continue;
    const offsetMs = parseZoneMs(text);
    const ownMs = UNITS_MS.find((unit) => (instant + offsetMs) % unit === 0) ?? 1;
    if (unitMs === undefined || ownMs < unitMs) [unitMs, zoneMs] = [ownMs, offsetMs];
  }
  if (unitMs === undefined) return ms;
  return Math.floor((ms + zoneMs) / unitMs) * unitMs - zoneMs;
}

/** Returns how far the zone of a timestamp is ahead of UTC. 0 if the timestamp has no numeric zone. */
function parseZoneMs(text: string): number {
  const [, sign, hours, minutes = "00"] = /[T ].*([+-])(\d{2})(?::?(\d{2}))?$/i.exec(text) ?? [];
  if (sign === undefined) return 0;
  return (sign === "-" ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
}
