import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { ARRIVED_AT_MS, HOOKS_URL, isVerified, senderOf, TARGET } from "../support.ts";
import { config, hex, NOW_SECONDS, verify } from "./hmac-support.ts";

describe("the timestamp of a signed delivery", () => {
  const settings = (unit: string) => ({
    template: "{{timestamp}}.{{body}}",
    timestamp: { source: { in: "header", name: "X-Time" }, unit },
    toleranceSeconds: 300,
  });
  const verifyAt = (unit: string, time: string) =>
    verify(settings(unit), { body: "{}", headers: { "x-time": time, "x-sig": hex(`${time}.{}`) } });

  it.each([
    [-301, false],
    [-300, true],
    [0, true],
    [300, true],
    [301, false],
  ])("is accepted if it differs from the time of receipt by %i s, with a tolerance of 300 s: %s", async (offsetSeconds, accepted) => {
    expect(await verifyAt("seconds", String(NOW_SECONDS + offsetSeconds))).toBe(accepted);
    expect(await verifyAt("milliseconds", String(ARRIVED_AT_MS + offsetSeconds * 1_000))).toBe(accepted);
    expect(await verifyAt("rfc3339", new Date(ARRIVED_AT_MS + offsetSeconds * 1_000).toISOString())).toBe(
      accepted,
    );
  });

  it("is compared with the time of receipt to the millisecond", async () => {
    expect(await verifyAt("milliseconds", String(ARRIVED_AT_MS - 300_000))).toBe(true);
    expect(await verifyAt("milliseconds", String(ARRIVED_AT_MS - 300_001))).toBe(false);
    expect(await verifyAt("rfc3339", "2025-12-31T23:55:00.000000000Z")).toBe(true);
    expect(await verifyAt("rfc3339", "2025-12-31T23:54:59.999Z")).toBe(false);
    expect(await verifyAt("rfc3339", "2026-01-01T01:00:00+01:00")).toBe(true);
  });

  it.each([
    ["seconds", ""],
    ["seconds", "-5"],
    ["seconds", "1e9"],
    ["seconds", `0x${NOW_SECONDS.toString(16)}`],
    ["seconds", `${NOW_SECONDS}.5`],
    ["seconds", String(ARRIVED_AT_MS)],
    ["milliseconds", String(NOW_SECONDS)],
    ["rfc3339", "Thu, 01 Jan 2026 00:00:00 GMT"],
    ["rfc3339", "2026-01-01"],
    ["rfc3339", "2026-13-01T00:00:00Z"],
  ])("is rejected in the unit %s if it is %j", async (unit, time) => {
    expect(await verifyAt(unit, time)).toBe(false);
  });

  it("is rejected if its header differs from the signed timestamp", async () => {
    const headers = { "x-time": String(NOW_SECONDS), "x-sig": hex(`${NOW_SECONDS - 1_000}.{}`) };
    expect(await verify(settings("seconds"), { body: "{}", headers })).toBe(false);
  });

  it("can be read from the signed body", async () => {
    const inBody = {
      timestamp: { source: { in: "body", name: "$.at" }, unit: "milliseconds" },
      toleranceSeconds: 60,
    };
    const send = (atMs: number) => {
      const body = JSON.stringify({ at: atMs });
      return verify(inBody, { body, headers: { "x-sig": hex(body) } });
    };
    expect([await send(ARRIVED_AT_MS), await send(ARRIVED_AT_MS - 60_001)]).toEqual([true, false]);
  });
});

describe("the template that defines the signed text", () => {
  const url = `${HOOKS_URL}${TARGET}?b=2&a=1&a=0`;
  const target = `${TARGET}?b=2&a=1&a=0`;
  const form = "z=1&a=%C3%A9&a=b&a=b";

  it.each<[string, object, string]>([
    ["{{method}} {{url}}", {}, `POST ${url}`],
    ["{{path}} {{target}} {{host}}", {}, `${TARGET} ${target} hooks.example.com`],
    ["{{header:X-A}}|{{query:b}}|{{body:$.z}}", {}, "é|2|1"],
    ["{{body | sha256}}", {}, createHash("sha256").update(form).digest("hex")],
    ["{{body|sha512|base64}}", {}, createHash("sha512").update(form).digest("base64")],
    ["{{body | crc32}}", { allowWeak: true }, "1167037981"],
    ["{{query:none | optional}}.{{query:b | upper}}", {}, ".2"],
    ["{{url | uriEncode}}", {}, encodeURIComponent(url)],
    ["{{parameters}}", { parameters: { of: "form" } }, "abaéz1"],
    ["{{parameters}}", { parameters: { of: "form", omit: ["a"], pair: "&{{name}}={{value}}" } }, "&z=1"],
    [
      "{{parameters}}",
      { parameters: { of: "query", pair: "{{name}}={{value}}", between: "&" } },
      "a=0&a=1&b=2",
    ],
    [
      "{{signedHeaders}}",
      { signedHeaders: { listedIn: { in: "header", name: "x-list" } } },
      "x-a:é\nx-list:X-A, x-list",
    ],
  ])("renders %s with the settings %j", async (template, settings, signed) => {
    const headers = {
      "content-type": "application/x-www-form-urlencoded",
      "x-a": "é",
      "x-list": "X-A, x-list",
      "x-sig": hex(signed),
    };
    expect(await verify({ template, signsBody: false, ...settings }, { target, headers, body: form })).toBe(
      true,
    );
  });

  it("renders members of a JSON body in the listed order and skips missing members", async () => {
    const parameters = { of: "json", names: ["b", "c", "a"], order: "listed", pair: "{{name}}\n{{value}}\n" };
    const settings = { template: "{{parameters}}", parameters, signsBody: false };
    const body = JSON.stringify({ a: "1", x: "no", b: { c: true } });
    expect(await verify(settings, { body, headers: { "x-sig": hex('b\n{"c":true}\na\n1\n') } })).toBe(true);
  });

  it("rejects a delivery if a header in the template is missing or repeated", async () => {
    const settings = { template: "{{header:x-a}}{{body}}" };
    const headers = { "x-sig": hex("{}") };
    expect(await verify(settings, { body: "{}", headers })).toBe(false);
    expect(await verify(settings, { body: "{}", headers: { ...headers, "x-a": ["", ""] } })).toBe(false);
    expect(await verify(settings, { body: "{}", headers: { ...headers, "x-a": "" } })).toBe(true);
  });

  it("renders {{url}} with the base URL in the sender's settings, even behind a proxy", async () => {
    const settings = { template: "{{url}}{{body}}", baseUrl: "https://x.example/in/" };
    const headers = { "x-sig": hex(`https://x.example/in${TARGET}?a=1{}`) };
    for (const sent of [`${TARGET}?a=1`, `/behind${TARGET}?a=1`, `http://gateway${TARGET}?a=1`]) {
      expect(await verify(settings, { body: "{}", headers, target: sent })).toBe(true);
    }
  });

  it("can contain the secret, for a plain hash instead of an HMAC, if allowWeak is set", async () => {
    const plain = { construction: "plain", template: "{{body}}{{secret}}", allowWeak: true };
    const sender = senderOf(config(plain, "old", "k"));
    const signed = (secret: string) => createHash("sha256").update(`{}${secret}`).digest("hex");
    expect(await isVerified(sender, { body: "{}", headers: { "x-sig": signed("k") } })).toBe(true);
    expect(await isVerified(sender, { body: "{}", headers: { "x-sig": signed("") } })).toBe(false);
  });

  it("can cover a body hash in the query instead of the body, and the hash must match the body", async () => {
    const settings = { template: "{{url}}", bodyHash: { source: { in: "query", name: "h" } } };
    const h = createHash("sha256").update("{}").digest("hex");
    const sent = `${TARGET}?h=${h}`;
    const headers = { "x-sig": hex(`${HOOKS_URL}${sent}`) };
    expect(await verify(settings, { body: "{}", target: sent, headers })).toBe(true);
    expect(await verify(settings, { body: "{ }", target: sent, headers })).toBe(false);
    expect(await verify(settings, { body: "{}", headers: { "x-sig": hex(`${HOOKS_URL}${TARGET}`) } })).toBe(
      false,
    );
  });
});
