import { type Command, InvalidArgumentError } from "commander";

const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const FORM_CELLS = 28;
/** Largest time of a `Date` (ECMA-262, "Time Values and Time Range"). */
const MAX_DATE_MS = 8.64e15;
const AGE = /^(?<count>\d{1,9})(?<unit>[smhd])$/;
const TIME_OF_DAY = /^(?<hours>[01]?\d|2[0-3]):(?<minutes>[0-5]\d)(?::(?<seconds>[0-5]\d))?$/;
const TIMESTAMP =
  /^(?<date>\d{4}-\d{2}-(?<day>\d{2}))(?:[T ](?<time>\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)(?<zone>Z|[+-]\d{2}:?\d{2})?)?$/i;

/** `past` reads `2h` as two hours ago, and `future` reads it as in two hours. A time of day is the latest or the next one. */
type Direction = "past" | "future";

/** Parses a duration such as `30m` or `24h`. Returns seconds. */
export function parseDuration(text: string): number {
  const durationMs = readDuration(text);
  if (durationMs === undefined) throw new InvalidArgumentError("must be a duration such as 30m, 24h or 7d");
  return durationMs / 1_000;
}

/**
 * Parses a duration before or after now such as `2h`, a time of day such as `12:05`, or a timestamp. Times without a time zone are local
 * times. Returns ms since 1970.
 */
export function parseTime(text: string, direction: Direction = "past", nowMs = Date.now()): number {
  const durationMs = readDuration(text);
  const relativeMs =
    durationMs === undefined ? undefined : direction === "past" ? nowMs - durationMs : nowMs + durationMs;
  const atMs = relativeMs ?? readTimeOfDay(text, direction, nowMs) ?? readTimestamp(text);
  if (atMs !== undefined && Math.abs(atMs) <= MAX_DATE_MS) return atMs;
  throw new InvalidArgumentError(
    `must be a duration such as 10m, 2h or 7d, a time of day such as 12:05, or a timestamp such as 2026-01-31T12:05 (time zone ${timeZone()}) or 2026-01-31T12:05:00Z`,
  );
}

export const parsePast = (text: string): number => parseTime(text);

/** Like `parsePast`, but leaves the words `now` and `earliest` to the gateway. Returns a time of the API. */
export const parseStart = (text: string): string =>
  text === "now" || text === "earliest" ? text : new Date(parseTime(text)).toISOString();

export const parseFuture = (text: string): string => new Date(parseTime(text, "future")).toISOString();

export const formatTime = (atMs: number | undefined): string | undefined =>
  atMs === undefined ? undefined : new Date(atMs).toISOString();

/** Explains the times of a command's options in its help. */
export const explainTimes = (command: Command, direction: Direction = "past"): Command =>
  command.addHelpText("after", () => {
    const [side, nearest] = direction === "past" ? ["ago", "last"] : ["from now", "next"];
    const forms = [
      ["10m, 2h, 7d", `minutes, hours or days ${side}; s stands for seconds`],
      ["12:05", `the ${nearest} 12:05 in your time zone (${timeZone()})`],
      ["2026-01-31, 2026-01-31T12:05", "in your time zone too; the variable TZ sets another one"],
      ["2026-01-31T12:05Z", "in UTC; an offset such as +01:00 can replace the Z"],
    ] as const;
    const lines = forms.map(([form, meaning]) => `  ${form.padEnd(FORM_CELLS)}  ${meaning}`);
    return `\nTimes:\n${lines.join("\n")}`;
  });

/** Adds the options of a command that reads a range of times. */
export const timeOptions = (
  command: Command,
  { since = "start time", until = "end time", fallback = "" } = {},
): Command =>
  explainTimes(
    command
      .option("--since <when>", `${since}, such as 2h, 12:05 or a timestamp${fallback}`, parsePast)
      .option("--until <when>", `${until}, such as 2h, 12:05 or a timestamp`, parsePast),
  );

/** Adds the options of a command that selects items by the time at which they were first seen. */
export const firstSeenOptions = (command: Command): Command =>
  timeOptions(command, {
    since: "only items first seen after this time",
    until: "only items first seen before this time",
  });

function readDuration(text: string): number | undefined {
  const { count, unit } = AGE.exec(text)?.groups ?? {};
  return count === undefined || unit === undefined ? undefined : Number(count) * (UNITS[unit] ?? 0);
}

function readTimeOfDay(text: string, direction: Direction, nowMs: number): number | undefined {
  const { hours, minutes, seconds = "0" } = TIME_OF_DAY.exec(text)?.groups ?? {};
  if (hours === undefined) return undefined;
  const at = new Date(nowMs);
  at.setHours(Number(hours), Number(minutes), Number(seconds), 0);
  // Days do not always have 24 hours, so the date changes instead.
  if (direction === "past" && at.getTime() > nowMs) at.setDate(at.getDate() - 1);
  if (direction === "future" && at.getTime() < nowMs) at.setDate(at.getDate() + 1);
  return at.getTime();
}

/** `Date.parse` accepts days that a month does not have, and reads a date without a time as UTC. */
function readTimestamp(text: string): number | undefined {
  const { date, day, time = "00:00", zone = "" } = TIMESTAMP.exec(text)?.groups ?? {};
  if (date === undefined || new Date(`${date}T00:00Z`).getUTCDate() !== Number(day)) return undefined;
  const atMs = Date.parse(`${date}T${time}${zone.toUpperCase()}`);
  return Number.isFinite(atMs) ? atMs : undefined;
}

const timeZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;
