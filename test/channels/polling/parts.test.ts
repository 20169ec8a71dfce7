import { describe, expect, it } from "vitest";
import { formatInstant } from "../../../src/channels/polling/config/timestamps.ts";
import { SeenKeys } from "../../../src/channels/polling/cursor/seen-keys.ts";
import { redactRequest, removeCredentials } from "../../../src/channels/polling/fetch/secrets.ts";
import { findLink } from "../../../src/channels/polling/pagination/link-header.ts";
import { redactSent } from "../../../src/channels/pull/redact-sent.ts";
import { parseTimestamp, type TimestampFormat } from "../../../src/lib/timestamps.ts";

describe("a timestamp", () => {
  it.each<[string, TimestampFormat, string | undefined]>([
    ["2026-01-31T09:30:00Z", "iso", "2026-01-31T09:30:00.000Z"],
    ["2026-01-31T09:30:00.123999+02:00", "iso", "2026-01-31T07:30:00.123Z"],
    ["2026-01-31 09:30:00,5 +0130", "iso", "2026-01-31T08:00:00.500Z"],
    ["2026-01-31T09:30-05", "iso", "2026-01-31T14:30:00.000Z"],
    ["2026-01-31T09:30:00", "iso", "2026-01-31T09:30:00.000Z"],
    ["2026-01-31", "iso", "2026-01-31T00:00:00.000Z"],
    ["2016-12-31T23:59:60Z", "iso", "2016-12-31T23:59:59.000Z"],
    ["2026-13-31", "iso", undefined],
    ["2026-01-31T25:00:00Z", "iso", undefined],
    ["31.01.2026", "iso", undefined],
    ["1769851800", "iso", undefined],
    ["1769851800", "epochSeconds", "2026-01-31T09:30:00.000Z"],
    ["1769851800.1239", "epochSeconds", "2026-01-31T09:30:00.123Z"],
    ["-1.5", "epochSeconds", "1969-12-31T23:59:58.500Z"],
    ["1769851800123", "epochMillis", "2026-01-31T09:30:00.123Z"],
    ["9".repeat(20), "epochMillis", undefined],
    ["1e9", "epochSeconds", undefined],
    ["", "epochSeconds", undefined],
    ["Sat, 31 Jan 2026 09:30:00 GMT", "rfc2822", "2026-01-31T09:30:00.000Z"],
    ["31 Jan 2026 09:30:00 +0200", "rfc2822", "2026-01-31T07:30:00.000Z"],
    ["2026-01-31", "rfc2822", undefined],
  ])("written as %s is parsed or rejected according to the format %s", (text, format, instant) => {
    const ms = parseTimestamp(text, format);
    expect(ms === undefined ? undefined : new Date(ms).toISOString()).toBe(instant);
  });

  it("is rounded down, never up, when it is formatted", () => {
    const ms = Date.UTC(2026, 0, 31, 9, 30, 0, 999);
    for (const format of ["iso", "epochSeconds", "epochMillis", "rfc2822"] as const) {
      expect(parseTimestamp(formatInstant(ms, format), format)).toBeLessThanOrEqual(ms);
    }
    expect(formatInstant(ms, "date")).toBe("2026-01-31");
  });
});

describe("the Link header (RFC 8288)", () => {
  it.each<[string | readonly string[] | undefined, string | undefined]>([
    ['<https://x/2>; rel="next"', "https://x/2"],
    ['<https://x/1>; rel="prev", <https://x/3>; rel="next"', "https://x/3"],
    ["</2>;rel=next", "/2"],
    ['</2>; title="a, b; c\\" rel=next"; rel="last next"', "/2"],
    ['</2>; REL="NEXT"', "/2"],
    ['</a?x=1,2;3>; rel="next"', "/a?x=1,2;3"],
    [['</1>; rel="prev"', '</2>; rel="next"'], "/2"],
    ['</2>; rel="prev"; rel="next"', undefined],
    ['</2>; rel="next"; anchor="#x"', undefined],
    ['</2>; rel="nextish"', undefined],
    ["/2; rel=next", undefined],
    ["", undefined],
    [undefined, undefined],
  ])("with the value %j names %j as the next page", (header, target) => {
    expect(findLink(header, "next")).toBe(target);
  });

  it.each([
    `<a>${'; a="'.repeat(200_000)}`,
    `<a>${" ".repeat(200_000)}x`,
    "<".repeat(200_000),
  ])("is parsed in linear time", (header) => {
    expect(() => findLink(header, "next")).not.toThrow();
  });
});

describe("the set of already seen item keys", () => {
  const key = (n: number) => String(n).padStart(22, "k");

  it("is stored compactly and restored unchanged", () => {
    const keys = new SeenKeys<number>();
    for (let n = 0; n < 100; n++) keys.add(key(n), n % 3);
    const written = keys.write();
    expect(JSON.stringify(written).length).toBeLessThan(100 * 22 + 50);
    const again = SeenKeys.read(written, Number);
    expect([...again.keys()].toSorted()).toEqual([...keys.keys()].toSorted());
    again.forget((stamp) => stamp < 2);
    expect(again.size).toBe(33);
    again.forgetFirst(10, new Set([key(2)]));
    expect([again.size, again.has(key(2))]).toEqual([10, true]);
  });
});

describe("the credentials of a request", () => {
  const redactOf = (authorization: string) =>
    redactSent({
      request: { method: "GET", url: "https://x/?key=a%2Fb-secret&n=12345678", headers: { authorization } },
      secretHeaders: ["authorization"],
      secretQuery: ["key", "n"],
    });

  it("are replaced with *** in a text, also where they are URL-encoded or lack their scheme", () => {
    const redact = redactOf("Bearer abc-def-ghi");
    expect(redact("Bearer abc-def-ghi, abc-def-ghi, a/b-secret a%2Fb-secret")).toBe("***, ***, *** ***");
    expect(redact('{"n":12345678}')).toBe('{"n":12345678}');
    expect(redactOf("short")("short")).toBe("short");
  });

  it("are replaced in a path, and removed from addresses that the server returns", () => {
    const secretPath = "/bot123:abc-def";
    const sent = {
      request: { method: "GET", url: `https://x${secretPath}/rows?key=k-secret`, headers: {} },
      secretHeaders: [],
      secretQuery: ["key"],
      secretPath,
    };
    expect(redactRequest(sent).url).toBe("https://x/***/rows?key=***");
    expect(redactSent(sent)("see /bot123:abc-def/rows")).toBe("see /***/rows");
    const cleaned = (text: string) => removeCredentials(new URL(text), sent);
    expect(cleaned(`https://x${secretPath}/rows?page=2&key=k-secret`)).toBe("https://x/rows?page=2");
    expect(cleaned("https://x/bot123:abc-defg/rows")).toBe("https://x/bot123:abc-defg/rows");
  });
});
