import type { OutboundResponse } from "./outbound.ts";

type Answer = Pick<OutboundResponse, "status" | "headers">;

/** Maximum wait in ms, even if the server requests a longer one. One day. */
const MAX_WAIT_MS = 86_400_000;
/** Distinguishes formats of a rate-limit reset. Smaller values are seconds from now. Values from here on are seconds since 1970. */
const EPOCH_SECONDS_FROM = 1_000_000_000;
/** Distinguishes formats of a rate-limit reset. Values from here on are milliseconds since 1970. */
const EPOCH_MS_FROM = 100_000_000_000;

/** Names of standard and older rate-limit headers: the number of remaining requests, and the time when the limit resets. */
const BUDGETS = [
  { remaining: "ratelimit-remaining", reset: "ratelimit-reset" },
  { remaining: "x-ratelimit-remaining", reset: "x-ratelimit-reset" },
  { remaining: "x-rate-limit-remaining", reset: "x-rate-limit-reset" },
] as const;

/**
 * Computes the earliest time for the next request from the headers of a response, in ms since 1970 by the local clock. It is at
 * most one day from now. Returns `undefined` if no header requests a wait.
 *
 * `Retry-After` (RFC 9110, section 10.2.3) applies with any status. The reset time of a rate limit applies if the status is 429,
 * or if no requests remain. Absolute times are compared with the server's own `Date`, because its clock may differ from the local
 * one.
 */
export function notBeforeOf({ status, headers }: Answer, nowMs: number): number | undefined {
  const text = (name: string): string => [headers[name] ?? ""].flat()[0]?.trim() ?? "";
  const serverNowMs = parseHttpDate(text("date")) ?? nowMs;
  const waits = [
    parseRetryAfter(text("retry-after"), serverNowMs),
    ...BUDGETS.filter(({ remaining }) => status === 429 || /^0+(\.0+)?$/.test(text(remaining))).map(
      ({ reset }) => parseReset(text(reset), serverNowMs),
    ),
  ].filter((wait) => wait !== undefined);
  if (waits.length === 0) return undefined;
  return nowMs + Math.min(Math.max(0, ...waits), MAX_WAIT_MS);
}

function parseRetryAfter(text: string, serverNowMs: number): number | undefined {
  if (/^\d{1,15}(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000);
  const dateMs = parseHttpDate(text);
  return dateMs === undefined ? undefined : dateMs - serverNowMs;
}

function parseReset(text: string, serverNowMs: number): number | undefined {
  if (!/^\d{1,15}(\.\d+)?$/.test(text)) return parseRetryAfter(text, serverNowMs);
  const value = Number(text);
  if (value < EPOCH_SECONDS_FROM) return Math.ceil(value * 1_000);
  return (value < EPOCH_MS_FROM ? value * 1_000 : value) - serverNowMs;
}

const DAYS = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
/** Format of HTTP dates. The two obsolete formats that follow must be accepted too (RFC 9110, section 5.6.7). */
const FIXDATE = new RegExp(`^${DAYS}, \\d{2} [A-Z][a-z]{2} \\d{4} \\d{2}:\\d{2}:\\d{2} GMT$`);
const RFC850 = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/;
const ASCTIME = new RegExp(`^${DAYS} [A-Z][a-z]{2} [ \\d]\\d \\d{2}:\\d{2}:\\d{2} \\d{4}$`);

function parseHttpDate(text: string): number | undefined {
  const isDate = FIXDATE.test(text) || RFC850.test(text) || ASCTIME.test(text);
  const ms = isDate ? Date.parse(text.endsWith("GMT") ? text : `${text} GMT`) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
