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
  { remaining: "x-ratelimit-remaining", reset: "x-ratelimit-reset-after" },
] as const;

/** Names of headers that contain a wait in milliseconds. */
const WAITS_MS = ["retry-after-ms", "x-ms-retry-after-ms"] as const;

const NONE = /^0+(\.0+)?$/;

/**
 * Computes the earliest time for the next request from the headers of a response, in ms since 1970 by the local clock. It is at
 * most one day from now. Returns `undefined` if no header requests a wait.
 *
 * `Retry-After` (RFC 9110, section 10.2.3) applies with any status. The reset time of a rate limit applies if the status is 429,
 * or if no requests remain. Absolute times are compared with the server's own `Date`, because its clock may differ from the local
 * one. The field `RateLimit` counts too, in the forms of the final and of earlier drafts.
 */
export function notBeforeOf({ status, headers }: Answer, nowMs: number): number | undefined {
  const text = (name: string): string => readHeader(headers, name);
  const serverNowMs = findServerTimeMs(headers) ?? nowMs;
  const waits = [
    parseRetryAfter(text("retry-after"), serverNowMs),
    ...BUDGETS.filter(({ remaining }) => status === 429 || NONE.test(text(remaining))).map(({ reset }) =>
      parseReset(text(reset), serverNowMs),
    ),
    ...readPolicyResets(headers, status).map((reset) => parseReset(reset, serverNowMs)),
    ...WAITS_MS.map((name) =>
      /^\d{1,15}(\.\d+)?$/.test(text(name)) ? Math.ceil(Number(text(name))) : undefined,
    ),
  ].filter((wait) => wait !== undefined);
  if (waits.length === 0) return undefined;
  return nowMs + Math.min(Math.max(0, ...waits), MAX_WAIT_MS);
}

/**
 * Returns the reset times in the field `RateLimit`: of the policies without remaining requests, or of all policies if the status is 429 and
 * none of them says so. Accepts `"default";r=0;t=30, "daily";r=9;t=3600` and the older form `limit=10, remaining=0, reset=30`.
 */
function readPolicyResets(headers: Answer["headers"], status: number): string[] {
  const field = [headers.ratelimit ?? []].flat().join(", ");
  const isOld = /\breset\s*=/i.test(field);
  const policies = (isOld ? [field] : field.split(",")).map((policy) => ({
    remaining: /(?:^|[;,\s])(?:r|remaining)\s*=\s*(\d+)\s*(?:[;,]|$)/i.exec(policy)?.[1],
    reset: /(?:^|[;,\s])(?:t|reset)\s*=\s*(\d+(?:\.\d+)?)\s*(?:[;,]|$)/i.exec(policy)?.[1],
  }));
  const spent = policies.filter(({ remaining = "" }) => NONE.test(remaining));
  const applicable = spent.length === 0 && status === 429 ? policies : spent;
  return applicable.flatMap(({ reset }) => reset ?? []);
}

/** Returns the time by the server's clock from the `Date` and `Age` of a response, or `undefined` if it has no valid `Date`. */
export function findServerTimeMs(headers: Answer["headers"]): number | undefined {
  const dateMs = parseHttpDate(readHeader(headers, "date"));
  const age = readHeader(headers, "age");
  return dateMs === undefined ? undefined : dateMs + (/^\d{1,9}$/.test(age) ? Number(age) * 1_000 : 0);
}

const readHeader = (headers: Answer["headers"], name: string): string =>
  [headers[name] ?? ""].flat()[0]?.trim() ?? "";

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
