import { describe, expect, it } from "vitest";
import { notBeforeOf } from "../../src/net/retry-after.ts";

const NOW = Date.parse("2026-01-31T09:30:00Z");
const EPOCH = NOW / 1_000;

const readWait = (headers: Readonly<Record<string, string>>, status = 429): number | undefined => {
  const notBefore = notBeforeOf({ status, headers }, NOW);
  return notBefore === undefined ? undefined : notBefore - NOW;
};

describe("reading Retry-After and rate-limit headers", () => {
  it.each([
    ["seconds", { "retry-after": "120" }, 120_000],
    ["zero seconds", { "retry-after": "0" }, 0],
    ["a date", { "retry-after": "Sat, 31 Jan 2026 09:31:00 GMT" }, 60_000],
    ["a date of RFC 850", { "retry-after": "Saturday, 31-Jan-26 09:31:00 GMT" }, 60_000],
    ["a date of asctime, which is UTC", { "retry-after": "Sat Jan 31 09:31:00 2026" }, 60_000],
    ["a date in the past, as no wait", { "retry-after": "Sat, 31 Jan 2026 09:00:00 GMT" }, 0],
    ["a reset in seconds", { "ratelimit-reset": "30" }, 30_000],
    ["a reset in seconds since 1970", { "x-ratelimit-reset": String(EPOCH + 30) }, 30_000],
    ["a reset in milliseconds since 1970", { "x-ratelimit-reset": String(NOW + 30_000) }, 30_000],
    ["a RateLimit field", { ratelimit: '"default";r=0;t=30' }, 30_000],
    ["a RateLimit field without a spent policy", { ratelimit: '"default";r=3;t=30' }, 30_000],
    ["a RateLimit field of several policies", { ratelimit: '"burst";r=0;t=5, "daily";r=90;t=3600' }, 5_000],
    [
      "a RateLimit field with other parameters",
      { ratelimit: '"default"; r=0; pk=:cHsdsRa894==:;t=7' },
      7_000,
    ],
    ["a RateLimit field of an earlier draft", { ratelimit: "limit=10, remaining=0, reset=30" }, 30_000],
    [
      "a RateLimit field of an earlier draft with semicolons",
      { ratelimit: "limit=10;remaining=0;reset=30" },
      30_000,
    ],
    ["a reset after fractions of a second", { "x-ratelimit-reset-after": "1.25" }, 1_250],
    ["milliseconds", { "retry-after-ms": "1500" }, 1_500],
    ["milliseconds of Azure", { "x-ms-retry-after-ms": "1500" }, 1_500],
    ["several headers, as the longest of them", { "retry-after": "5", "x-ratelimit-reset": "30" }, 30_000],
    ["seconds beyond a day, as one day", { "retry-after": "999999999" }, 86_400_000],
  ])("accepts %s", (_, headers, wait) => {
    expect(readWait(headers)).toBe(wait);
  });

  it("compares absolute times with the response's Date header, not with the local clock", () => {
    const headers = { date: "Sat, 31 Jan 2026 08:30:00 GMT", "retry-after": "Sat, 31 Jan 2026 08:31:00 GMT" };
    expect(readWait(headers)).toBe(60_000);
    expect(readWait({ date: headers.date, "x-ratelimit-reset": String(EPOCH - 3_600 + 10) })).toBe(10_000);
  });

  it("ignores the reset time of a rate limit while requests remain", () => {
    expect(readWait({ "x-ratelimit-remaining": "41", "x-ratelimit-reset": "30" }, 200)).toBeUndefined();
    expect(readWait({ "x-ratelimit-remaining": "0", "x-ratelimit-reset": "30" }, 200)).toBe(30_000);
    expect(readWait({ ratelimit: '"default";r=41;t=30' }, 200)).toBeUndefined();
    expect(readWait({ ratelimit: '"burst";r=0;t=5, "daily";r=90;t=3600' }, 200)).toBe(5_000);
    expect(readWait({ ratelimit: "limit=10, remaining=4, reset=30" }, 200)).toBeUndefined();
  });

  it.each([
    "",
    "soon",
    "-5",
    "1e9",
    "Jan 31",
    "2026-01-31",
    "5 apples",
  ])("ignores the invalid value %j", (text) => {
    expect(
      readWait({
        "retry-after": text,
        "ratelimit-reset": text,
        ratelimit: `"a";r=0;t=${text}`,
        "retry-after-ms": text,
      }),
    ).toBeUndefined();
  });
});
