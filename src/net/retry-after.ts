import type { OutboundResponse } from "./outbound.ts";

type Answer = Pick<OutboundResponse, "status" | "headers">;

/** Nobody is left alone for longer, whatever its answer says. */
const MAX_WAIT_MS = 86_400_000;
/** A reset below this is a number of seconds from now; above, seconds since the epoch; far above, milliseconds. */
const EPOCH_SECONDS_FROM = 1_000_000_000;
const EPOCH_MS_FROM = 100_000_000_000;

/** Header names of rate limits, before and after their standard: how much is left, and when the limit resets. */
const BUDGETS = [
  { remaining: "ratelimit-remaining", reset: "ratelimit-reset" },
  { remaining: "x-ratelimit-remaining", reset: "x-ratelimit-reset" },
  { remaining: "x-rate-limit-remaining", reset: "x-rate-limit-reset" },
] as const;

/**
 * Until when a server wants to be left alone, in ms of our clock, at most a day from now; undefined where it says nothing.
 *
 * `Retry-After` (RFC 9110, section 10.2.3) counts with any status; the reset of a budget of requests where the answer is a 429 or
 * the budget is used up. Times of the server's clock are taken from its own `Date`.
 */
export function notBeforeOf({ status, headers }: Answer, nowMs: number): number | undefined {
  const text = (name: string): string => [headers[name] ?? ""].flat()[0]?.trim() ?? "";
  const serverNowMs = parseHttpDate(text("date")) ?? nowMs;
  const waits = [
    waitOfRetryAfter(text("retry-after"), serverNowMs),
    ...BUDGETS.filter(({ remaining }) => status === 429 || /^0+(\.0+)?$/.test(text(remaining))).map(
      ({ reset }) => waitOfReset(text(reset), serverNowMs),
    ),
  ].filter((wait) => wait !== undefined);
  if (waits.length === 0) return undefined;
  return nowMs + Math.min(Math.max(0, ...waits), MAX_WAIT_MS);
}

function waitOfRetryAfter(text: string, serverNowMs: number): number | undefined {
  if (/^\d{1,15}(\.\d+)?$/.test(text)) return Math.ceil(Number(text) * 1_000);
  const dateMs = parseHttpDate(text);
  return dateMs === undefined ? undefined : dateMs - serverNowMs;
}

function waitOfReset(text: string, serverNowMs: number): number | undefined {
  if (!/^\d{1,15}(\.\d+)?$/.test(text)) return waitOfRetryAfter(text, serverNowMs);
  const value = Number(text);
  if (value < EPOCH_SECONDS_FROM) return Math.ceil(value * 1_000);
  return (value < EPOCH_MS_FROM ? value * 1_000 : value) - serverNowMs;
}

const DAYS = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)";
/** The one form that is sent, and the two that are read besides (RFC 9110, section 5.6.7). */
const FIXDATE = new RegExp(`^${DAYS}, \\d{2} [A-Z][a-z]{2} \\d{4} \\d{2}:\\d{2}:\\d{2} GMT$`);
const RFC850 = /^[A-Z][a-z]{5,8}, \d{2}-[A-Z][a-z]{2}-\d{2} \d{2}:\d{2}:\d{2} GMT$/;
const ASCTIME = new RegExp(`^${DAYS} [A-Z][a-z]{2} [ \\d]\\d \\d{2}:\\d{2}:\\d{2} \\d{4}$`);

function parseHttpDate(text: string): number | undefined {
  const isDate = FIXDATE.test(text) || RFC850.test(text) || ASCTIME.test(text);
  const ms = isDate ? Date.parse(text.endsWith("GMT") ? text : `${text} GMT`) : Number.NaN;
  return Number.isNaN(ms) ? undefined : ms;
}
