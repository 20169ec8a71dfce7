import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { UnavailableError } from "../../src/lib/errors.ts";
import { type Preset, presetSchema } from "../../src/verify/presets.ts";
import { lacksSecret } from "../../src/verify/sender.ts";
import { inheritPresetVerification } from "../../src/verify/sender-config.ts";
import { findingsOf, isVerified, parseSender, senderOf } from "./support.ts";

const acme: Preset = presetSchema.parse({
  preset: "acme",
  title: "Acme",
  description: "Events from Acme.",
  documentationUrl: "https://acme.example/webhooks",
  sample: { headers: { "content-type": "application/json" }, body: "{}" },
  secret: { label: "Signing secret", hint: "Acme settings" },
  verification: {
    scheme: "hmac",
    name: "X-Acme",
    template: "{{timestamp}}.{{body}}",
    timestamp: { source: { in: "header", name: "X-Time" } },
    toleranceSeconds: 300,
  },
  handshakes: [{ title: "Ping", when: { method: "HEAD" }, requireVerified: false }],
  typePath: "$.type",
  idPath: "$.id",
  itemsPath: "$.items",
  readAs: "application/json",
});
const open: Preset = presetSchema.parse({
  ...acme,
  preset: "open",
  secret: null,
  verification: { scheme: "none" },
});
const presets = new Map([acme, open].map((preset) => [preset.preset, preset]));

const sign = (text: string) => createHmac("sha256", "k").update(text).digest("hex");
const secrets = [{ value: "k" }];
const at = (seconds: number) => ({
  body: "{}",
  headers: { "x-time": String(seconds), "x-acme": sign(`${seconds}.{}`) },
});
const NOW_SECONDS = Date.parse("2026-01-01T00:00:00Z") / 1_000;

describe("a channel with a preset", () => {
  it("verifies deliveries with no setting other than its secret", async () => {
    expect(lacksSecret(parseSender({ preset: "acme" }, presets))).toBe(true);
    expect(lacksSecret(parseSender({ preset: "open" }, presets))).toBe(false);
    expect(await isVerified(senderOf({ preset: "acme" }, { presets }), at(NOW_SECONDS))).toBe(false);
    const sender = senderOf({ preset: "acme", secrets }, { presets });
    expect(await isVerified(sender, at(NOW_SECONDS))).toBe(true);
    expect(await isVerified(sender, at(NOW_SECONDS - 301))).toBe(false);
    expect(sender.methods).toEqual(["POST", "HEAD"]);
  });

  it("uses the preset's verification even if the channel's own scheme is none", async () => {
    const config = { preset: "acme", verification: { scheme: "none" as const }, secrets };
    expect(await isVerified(senderOf(config, { presets }), { body: "{}" })).toBe(false);
    expect(inheritPresetVerification(config).verification).toEqual({ scheme: "preset" });
    expect(inheritPresetVerification({ verification: { scheme: "none" } }).verification).toEqual({
      scheme: "none",
    });
  });

  it("can override individual fields of the preset's verification", async () => {
    const config = {
      preset: "acme",
      secrets,
      verification: { scheme: "preset", toleranceSeconds: 900, timestamp: { source: { name: "X-Time" } } },
      handshakes: [],
      readAs: "application/x-www-form-urlencoded",
    };
    const sender = senderOf(config, { presets });
    expect(await isVerified(sender, at(NOW_SECONDS - 900))).toBe(true);
    expect(await isVerified(sender, at(NOW_SECONDS - 901))).toBe(false);
    expect(sender.methods).toEqual(["POST"]);
    const parsed = parseSender(config, presets);
    expect(parsed).toMatchObject({
      readAs: "application/x-www-form-urlencoded",
      paths: { typePath: "$.type", idPath: "$.id", itemsPath: "$.items" },
    });
  });

  it("reads bodies as JSON lines if `readAs` says so", () => {
    for (const readAs of ["ndjson", "application/x-ndjson"])
      expect(parseSender({ preset: "acme", secrets, readAs }, presets)).toMatchObject({
        readAs: "application/x-ndjson",
      });
  });

  it("can replace the preset's verification by another scheme", async () => {
    const sender = senderOf(
      { preset: "acme", verification: { scheme: "token", in: "bearer" }, secrets },
      { presets },
    );
    expect(await isVerified(sender, { headers: { authorization: "Bearer k" } })).toBe(true);
    expect(await isVerified(sender, at(NOW_SECONDS))).toBe(false);
  });

  it.each<[string, object, string, RegExp]>([
    [
      "an unknown preset, with the most similar name as a suggestion",
      { preset: "acmee" },
      "preset",
      /not a known preset; did you mean acme/,
    ],
    ["an unknown preset, without a suggestion", { preset: "zzzzzzzz" }, "preset", /is not a known preset$/],
    ["the scheme preset without a preset", { verification: { scheme: "preset" } }, "preset", /required/],
    [
      "a verification field that the preset's scheme does not know",
      { preset: "acme", verification: { scheme: "preset", audience: "a" } },
      "verification.audience",
      /known field/,
    ],
    [
      "a verification field that contradicts the preset",
      { preset: "acme", verification: { scheme: "preset", template: "{{timestamp}}" } },
      "verification.template",
      /body/,
    ],
  ])("is rejected if it has %s", (_, config, path, message) => {
    expect(findingsOf(config, presets)).toEqual({ [path]: expect.stringMatching(message) });
  });
});

it("settings are rejected if an unverified handshake could sign text that passes as a delivery signature", () => {
  const handshake = {
    title: "CRC",
    when: { method: "GET" },
    requireVerified: false,
    respond: { body: "{{query:t | hmac-sha256}}" },
  };
  const verification = { scheme: "hmac", name: "x", template: "{{header:x-t}}", signsBody: false };
  const path = "handshakes.0.requireVerified";
  expect(findingsOf({ verification, handshakes: [handshake] })).toHaveProperty([path]);
  expect(findingsOf({ verification, handshakes: [{ ...handshake, requireVerified: true }] })).toEqual({});
  expect(findingsOf({ verification: { scheme: "hmac", name: "x" }, handshakes: [handshake] })).toEqual({});
});

describe("a preset file", () => {
  it.each([
    ["no secret field", { secret: undefined }],
    ["a contradictory verification", { verification: { scheme: "hmac", name: "x", toleranceSeconds: 3 } }],
    ["an unknown field", { webhook: true }],
  ])("is rejected with %s", (_, wrong) => {
    expect(presetSchema.safeParse({ ...acme, ...wrong }).success).toBe(false);
  });
});

describe("the verification scheme anyOf", () => {
  const anyOf = (...of: object[]) => ({ scheme: "anyOf", of });
  const hmac = { scheme: "hmac", name: "x-sig" };
  const token = { scheme: "token", name: "x-token" };
  const fetched = {
    scheme: "asymmetric",
    algorithm: "ed25519",
    name: "x-ed",
    keys: { from: "url", url: "https://k.example/k" },
  };
  const jwt = { scheme: "jwt", algorithms: ["HS256"], keys: { from: "secrets" } };

  it("accepts a request that at least one of its schemes accepts, and removes the credentials of all schemes", async () => {
    const sender = senderOf({ verification: anyOf(hmac, token), secrets });
    expect(await isVerified(sender, { body: "{}", headers: { "x-sig": sign("{}") } })).toBe(true);
    expect(await isVerified(sender, { body: "{}", headers: { "x-token": "k", "x-sig": "00" } })).toBe(true);
    expect(await isVerified(sender, { body: "{}", headers: { "x-token": "no", "x-sig": sign("[]") } })).toBe(
      false,
    );
    const request = { method: "POST", target: "/", body: Buffer.from("{}"), arrivedAtMs: 0 };
    const verified = await sender.verify({
      ...request,
      headers: { "x-sig": sign("{}"), "x-token": "no", "x-a": "1" },
    });
    expect(verified.ok && { ...verified.value.headers }).toEqual({ "x-a": "1" });
  });

  it("supports schemes that verify asynchronously, in any position", async () => {
    for (const verification of [anyOf(jwt, hmac), anyOf(hmac, jwt)]) {
      const sender = senderOf({ verification, secrets });
      expect(await isVerified(sender, { body: "{}", headers: { "x-sig": sign("{}") } })).toBe(true);
      expect(await isVerified(sender, { body: "{}", headers: { "x-sig": "00" } })).toBe(false);
    }
  });

  it("fails as unavailable if one scheme is unavailable and no other scheme accepts", async () => {
    for (const verification of [anyOf(fetched, hmac), anyOf(hmac, fetched)]) {
      const sender = senderOf({ verification, secrets });
      const headers = { "x-ed": "00" };
      expect(await isVerified(sender, { body: "{}", headers: { ...headers, "x-sig": sign("{}") } })).toBe(
        true,
      );
      await expect(isVerified(sender, { body: "{}", headers })).rejects.toThrow(UnavailableError);
    }
  });

  it("requires a secret only if all of its schemes do, and the secret must be valid for at least one", () => {
    expect(lacksSecret(parseSender({ verification: anyOf(hmac, token) }))).toBe(true);
    expect(lacksSecret(parseSender({ verification: anyOf(hmac, fetched) }))).toBe(false);
    const inHex = { ...hmac, key: { encoding: "hex" } };
    expect(findingsOf({ verification: anyOf(inHex, inHex), secrets })).toHaveProperty(["secrets.0.value"]);
    expect(findingsOf({ verification: anyOf(inHex, token), secrets })).toEqual({});
  });

  it.each([
    ["one scheme", [hmac]],
    ["the scheme none", [hmac, { scheme: "none" }]],
    ["nested anyOf schemes", [hmac, anyOf(hmac, token)]],
    ["five schemes", [hmac, hmac, hmac, hmac, hmac]],
  ])("is rejected with %s", (_, of) => {
    expect(Object.keys(findingsOf({ verification: anyOf(...of) }))[0]).toMatch(/^verification\.of/);
  });
});
