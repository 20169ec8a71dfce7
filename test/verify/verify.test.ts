import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import { lacksSecret } from "../../src/verify/sender.ts";
import { ARRIVED_AT_MS, findingsOf, isVerified, parseSender, requestOf, senderOf } from "./support.ts";

const hmacIn = (place: "header" | "query", name: string) => ({
  verification: { scheme: "hmac", in: place, name },
  secrets: [{ value: "k" }],
});
const sign = (text: string, secret = "k"): string => createHmac("sha256", secret).update(text).digest("hex");

async function verified(config: unknown, parts: Parameters<typeof requestOf>[0]) {
  const result = await senderOf(config).verify(requestOf(parts));
  if (!result.ok) throw new Error(result.error.message);
  return result.value;
}

describe("a verified delivery", () => {
  it("contains no signature, Authorization or Cookie header", async () => {
    const headers = {
      "x-sig": sign("{}"),
      authorization: "Bearer s",
      cookie: "a=b",
      "x-github-event": "push",
    };
    const delivery = await verified(hmacIn("header", "X-Sig"), { body: "{}", headers });
    expect({ ...delivery.headers }).toEqual({ "x-github-event": "push" });
  });

  it("contains its query parameters, with an array for a repeated name", async () => {
    const target = "/hooks/x?a=1&a=2&__proto__=p&s=4e";
    expect(JSON.stringify((await verified({}, { target })).query)).toBe(
      '{"a":["1","2"],"__proto__":"p","s":"4e"}',
    );
  });

  it("contains its query parameters except the signature", async () => {
    const target = `/hooks/x?a=1&s=${sign("{}")}&b=2`;
    const delivery = await verified(hmacIn("query", "s"), { body: "{}", target });
    expect({ ...delivery.query }).toEqual({ a: "1", b: "2" });
  });

  it("does not contain headers in which a proxy repeats the secret channel URL", async () => {
    const headers = { "x-forwarded-path": "/hooks/ch_1", "x-original-url": "/hooks/ch_1", "x-a": "1" };
    expect({ ...(await verified({}, { headers })).headers }).toEqual({ "x-a": "1" });
  });

  it("has the content type of the channel setting readAs", async () => {
    const headers = { "content-type": "text/plain", __proto__: "p" };
    const delivery = await verified({ readAs: "application/json" }, { headers });
    expect(delivery.headers["content-type"]).toBe("application/json");
    expect(delivery.headers.constructor).toBe(undefined);
  });
});

describe("a request to a channel", () => {
  it("is accepted without a credential if the channel has no verification settings", async () => {
    expect(await isVerified(senderOf({}), { body: "{}" })).toBe(true);
  });

  it("is verified synchronously unless public keys must be fetched", () => {
    const headers = { "x-sig": sign("{}") };
    expect(senderOf(hmacIn("header", "x-sig")).verify(requestOf({ body: "{}", headers }))).toMatchObject({
      ok: true,
    });
  });

  it("is accepted with any of the channel's secrets, each only within its validity period", async () => {
    const sender = senderOf({
      verification: { scheme: "hmac", name: "x-sig" },
      secrets: [
        { value: "old", notAfter: "2026-01-01T00:00:00Z" },
        { value: "k", notBefore: "2026-01-01T00:00:00Z", notAfter: "2026-02-01T00:00:00+00:00" },
      ],
    });
    const signed = { body: "{}", headers: { "x-sig": sign("{}") } };
    const old = { body: "{}", headers: { "x-sig": sign("{}", "old") } };
    expect(await isVerified(sender, signed)).toBe(true);
    expect(await isVerified(sender, { ...signed, arrivedAtMs: ARRIVED_AT_MS - 1 })).toBe(false);
    expect(await isVerified(sender, { ...signed, arrivedAtMs: Date.parse("2026-02-01T00:00:00Z") })).toBe(
      false,
    );
    expect(await isVerified(sender, old)).toBe(false);
    expect(await isVerified(sender, { ...old, arrivedAtMs: ARRIVED_AT_MS - 1 })).toBe(true);
  });

  it("is rejected if it is signed with a named secret, because only unnamed secrets verify deliveries", async () => {
    const config = { ...hmacIn("header", "x-sig"), secrets: [{ value: "k", name: "verifyToken" }] };
    expect(lacksSecret(parseSender(config))).toBe(true);
    expect(await isVerified(senderOf(config), { body: "{}", headers: { "x-sig": sign("{}") } })).toBe(false);
  });

  it("is rejected if the channel requires a signature but has no secret", async () => {
    const config = { verification: { scheme: "hmac", name: "x-sig" } };
    expect(lacksSecret(parseSender(config))).toBe(true);
    expect(await isVerified(senderOf(config), { body: "{}", headers: { "x-sig": sign("{}", "") } })).toBe(
      false,
    );
  });
});

describe("a request to a channel in shadow mode", () => {
  it("is accepted even if verification fails, and the reason is reported", async () => {
    const reasons: string[] = [];
    const config = { ...hmacIn("header", "x-sig"), shadow: true };
    const sender = senderOf(config, { onShadowed: (reason) => reasons.push(reason) });
    expect(await isVerified(sender, { body: "{}", headers: { "x-sig": sign("{}") } })).toBe(true);
    for (const headers of [{}, { "x-sig": "zz" }, { "x-sig": sign("{") }] as Record<string, string>[]) {
      const result = await sender.verify(requestOf({ body: "{}", headers }));
      expect(result.ok && { ...result.value.headers }).toEqual({});
    }
    expect(reasons).toEqual(["missing", "malformed", "mismatch"]);
  });

  it("is accepted even if the channel has no secret or the sender's keys cannot be fetched", async () => {
    const reasons: string[] = [];
    const keys = { from: "url", url: "https://keys.example.com/jwks" };
    const verification = { scheme: "asymmetric", algorithm: "ed25519", name: "x-sig", keys };
    const onShadowed = (reason: string) => reasons.push(reason);
    const parts = { body: "{}", headers: { "x-sig": "00" } };
    expect(await isVerified(senderOf({ verification, shadow: true }, { onShadowed }), parts)).toBe(true);
    expect(reasons).toEqual(["unavailable"]);
    await expect(isVerified(senderOf({ verification }), parts)).rejects.toThrow(UnavailableError);
    expect(lacksSecret(parseSender({ verification: { scheme: "hmac", name: "x" }, shadow: true }))).toBe(
      false,
    );
  });
});

describe("the channel setting allowedAddresses", () => {
  const config = { allowedAddresses: ["203.0.113.0/24", "2001:db8::/32", "198.51.100.7"] };

  it.each([
    ["203.0.113.9", true],
    ["::ffff:203.0.113.9", true],
    ["2001:db8::1", true],
    ["198.51.100.7", true],
    ["198.51.100.8", false],
    ["2001:db9::1", false],
    ["unknown", false],
    [undefined, false],
  ])("decides whether a request from %s is accepted: %s", async (clientAddress, isAllowed) => {
    const from = clientAddress === undefined ? {} : { clientAddress };
    expect(await isVerified(senderOf(config), { body: "{}", ...from })).toBe(isAllowed);
  });

  it("applies in addition to the signature, and only reports violations in shadow mode", async () => {
    const clientAddress = "203.0.113.9";
    const both = { ...config, ...hmacIn("header", "x-sig") };
    const signed = { body: "{}", headers: { "x-sig": sign("{}") } };
    expect(await isVerified(senderOf(both), { ...signed, clientAddress })).toBe(true);
    expect(await isVerified(senderOf(both), { body: "{}", clientAddress })).toBe(false);
    expect(await isVerified(senderOf(both), { ...signed, clientAddress: "192.0.2.1" })).toBe(false);
    const reasons: string[] = [];
    const shadowed = senderOf({ ...both, shadow: true }, { onShadowed: (reason) => reasons.push(reason) });
    expect(await isVerified(shadowed, { ...signed, clientAddress: "192.0.2.1" })).toBe(true);
    expect(reasons).toEqual(["address"]);
  });

  it("must contain at least one network or address", () => {
    for (const wrong of ["203.0.113.0/33", "localhost", "203.0.113", ""]) {
      expect(findingsOf({ allowedAddresses: [wrong] })).toMatchObject({
        "allowedAddresses.0": expect.stringContaining("must be a network"),
      });
    }
    expect(Object.keys(findingsOf({ allowedAddresses: [] }))).toEqual(["allowedAddresses"]);
  });
});
