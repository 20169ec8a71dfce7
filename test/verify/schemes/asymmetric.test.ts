import {
  createHash,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  X509Certificate,
} from "node:crypto";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import {
  ARRIVED_AT_MS,
  findingsOf,
  isVerified,
  type RequestParts,
  type SenderOptions,
  senderOf,
} from "../support.ts";

const ed25519 = generateKeyPairSync("ed25519");
const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" });
const p384 = generateKeyPairSync("ec", { namedCurve: "P-384" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const shortRsa = generateKeyPairSync("rsa", { modulusLength: 1_024 });
const certificatePair: { readonly privateKey: string; readonly certificate: string } = JSON.parse(
  readFileSync(new URL("../../vectors/verify/certificate.json", import.meta.url), "utf8"),
);

const pem = (key: KeyObject): string => key.export({ format: "pem", type: "spki" }).toString();
const jwk = (key: KeyObject, more: object = {}): string =>
  JSON.stringify({ ...key.export({ format: "jwk" }), ...more });
const inline = (...keys: string[]) => ({ from: "settings", keys });

const base = { scheme: "asymmetric", algorithm: "ed25519", name: "x-sig", encoding: "base64" };
const verify = (verification: object, parts: RequestParts, options?: SenderOptions): Promise<boolean> =>
  isVerified(senderOf({ verification: { ...base, ...verification } }, options), parts);
const signed = (signature: Buffer, headers: Record<string, string> = {}): RequestParts => ({
  body: "{}",
  headers: { "x-sig": signature.toString("base64"), ...headers },
});
const ed25519Signature = sign(null, Buffer.from("{}"), ed25519.privateKey);

describe("an asymmetric webhook signature", () => {
  it.each([
    ["ed25519", "der", ed25519, null, "der"],
    ["ecdsa-p256-sha256", "der", p256, "sha256", "der"],
    ["ecdsa-p256-sha256", "ieee-p1363", p256, "sha256", "ieee-p1363"],
    ["ecdsa-p384-sha384", "der", p384, "sha384", "der"],
    ["rsa-sha256", "der", rsa, "sha256", "der"],
    ["rsa-sha512", "der", rsa, "sha512", "der"],
  ] as const)("with %s (%s) is accepted only for the signed body and the matching public key", async (algorithm, ecdsaFormat, pair, hash, dsaEncoding) => {
    const signature = sign(hash, Buffer.from("{}"), { key: pair.privateKey, dsaEncoding });
    const settings = { algorithm, ecdsaFormat, keys: inline(pem(pair.publicKey)) };
    expect(await verify(settings, signed(signature))).toBe(true);
    expect(await verify(settings, { ...signed(signature), body: "{ }" })).toBe(false);
    const altered = Buffer.from(signature);
    altered.writeUInt8(altered.readUInt8(altered.length - 1) ^ 1, altered.length - 1);
    expect(await verify(settings, signed(altered))).toBe(false);
    const others = [ed25519, p256, p384, rsa]
      .filter((other) => other !== pair)
      .map((other) => pem(other.publicKey));
    expect(await verify({ ...settings, keys: inline(...others) }, signed(signature))).toBe(false);
    expect(
      await verify({ ...settings, keys: inline(...others, pem(pair.publicKey)) }, signed(signature)),
    ).toBe(true);
  });

  it("is verified with a public key in PEM, JWK, JWK set, map of PEMs, DER, hex or base64 format", async () => {
    const der = ed25519.publicKey.export({ format: "der", type: "spki" });
    const raw = der.subarray(-32);
    const forms = [
      pem(ed25519.publicKey),
      jwk(ed25519.publicKey),
      JSON.stringify({ keys: [JSON.parse(jwk(rsa.publicKey)), JSON.parse(jwk(ed25519.publicKey))] }),
      JSON.stringify({ a: pem(p256.publicKey), b: pem(ed25519.publicKey) }),
      der.toString("base64"),
      raw.toString("hex"),
      raw.toString("base64"),
    ];
    for (const form of forms) {
      expect([form, await verify({ keys: inline(form) }, signed(ed25519Signature))]).toEqual([form, true]);
      const config = { verification: { ...base, keys: { from: "secrets" } }, secrets: [{ value: form }] };
      expect(await isVerified(senderOf(config), signed(ed25519Signature))).toBe(true);
    }
  });

  it("is verified with the key of a certificate only while the certificate is valid", async () => {
    const signature = sign("sha256", Buffer.from("{}"), createPrivateKey(certificatePair.privateKey));
    const settings = { algorithm: "rsa-sha256", keys: inline(certificatePair.certificate) };
    const { validFromDate, validToDate } = new X509Certificate(certificatePair.certificate);
    const at = (arrivedAtMs: number) => verify(settings, { ...signed(signature), arrivedAtMs });
    expect(await at(validFromDate.getTime())).toBe(true);
    expect(await at(validFromDate.getTime() - 1)).toBe(false);
    expect(await at(validToDate.getTime())).toBe(true);
    expect(await at(validToDate.getTime() + 1)).toBe(false);
  });

  it("is accepted with SHA-1 or a short RSA key only if allowWeak is set", async () => {
    const bySha1 = signed(sign("sha1", Buffer.from("{}"), rsa.privateKey));
    const settings = { algorithm: "rsa-sha1", keys: inline(pem(rsa.publicKey)) };
    expect(findingsOf({ verification: { ...base, ...settings } })).toHaveProperty(["verification.algorithm"]);
    expect(await verify({ ...settings, allowWeak: true }, bySha1)).toBe(true);
    const byShort = signed(sign("sha256", Buffer.from("{}"), shortRsa.privateKey));
    const short = { algorithm: "rsa-sha256", keys: inline(pem(shortRsa.publicKey)) };
    expect(await verify(short, byShort)).toBe(false);
    expect(await verify({ ...short, allowWeak: true }, byShort)).toBe(true);
  });

  it("is rejected if its header names an algorithm that the settings do not list", async () => {
    const settings = {
      algorithm: undefined,
      algorithmFrom: {
        source: { in: "header", name: "x-version" },
        values: { "1": "rsa-sha1", "2": "rsa-sha256" },
      },
      keys: inline(pem(rsa.publicKey)),
      allowWeak: true,
    };
    const signWith = (hash: string) => sign(hash, Buffer.from("{}"), rsa.privateKey);
    expect(await verify(settings, signed(signWith("sha1"), { "x-version": "1" }))).toBe(true);
    expect(await verify(settings, signed(signWith("sha256"), { "x-version": "2" }))).toBe(true);
    expect(await verify(settings, signed(signWith("sha1"), { "x-version": "2" }))).toBe(false);
    expect(await verify(settings, signed(signWith("sha256"), { "x-version": "constructor" }))).toBe(false);
    expect(await verify(settings, signed(signWith("sha256")))).toBe(false);
  });

  it("can cover a text that includes the channel's shared secret", async () => {
    const template = "{{header:x-id}}|{{secret}}|{{body | crc32}}";
    const settings = { algorithm: "rsa-sha256", keys: inline(pem(rsa.publicKey)), template, allowWeak: true };
    const config = { verification: { ...base, ...settings }, secrets: [{ value: "old" }, { value: "WH-1" }] };
    const signText = (text: string) =>
      signed(sign("sha256", Buffer.from(text), rsa.privateKey), { "x-id": "i" });
    expect(await isVerified(senderOf(config), signText("i|WH-1|2745614147"))).toBe(true);
    expect(await isVerified(senderOf(config), signText("i||2745614147"))).toBe(false);
    expect(await isVerified(senderOf({ ...config, secrets: [] }), signText("i||2745614147"))).toBe(false);
  });
});

describe("public keys that the gateway fetches", () => {
  const url = "https://keys.example.com/jwks";
  const jwks = (...pairs: { readonly publicKey: KeyObject }[]) =>
    JSON.stringify({ keys: pairs.map(({ publicKey }, i) => JSON.parse(jwk(publicKey, { kid: `k${i}` }))) });

  it("come from the configured URL, and the key id in the request selects the key", async () => {
    const fetched: string[] = [];
    const fetchPinned = async (address: string) => {
      fetched.push(address);
      return Buffer.from(jwks(p256, ed25519));
    };
    const keys = { from: "url", url, keyId: { in: "header", name: "x-kid" } };
    const sender = senderOf({ verification: { ...base, keys } }, { fetchPinned });
    expect(await isVerified(sender, signed(ed25519Signature, { "x-kid": "k1" }))).toBe(true);
    expect(await isVerified(sender, signed(ed25519Signature, { "x-kid": "k0" }))).toBe(false);
    expect(await isVerified(sender, signed(ed25519Signature))).toBe(false);
    expect(fetched).toEqual([url]);
  });

  it("are fetched again after 30 seconds if no cached key verifies the signature", async () => {
    let pairs = [p256];
    const fetchPinned = async () => Buffer.from(jwks(...pairs));
    const sender = senderOf({ verification: { ...base, keys: { from: "url", url } } }, { fetchPinned });
    expect(await isVerified(sender, signed(ed25519Signature))).toBe(false);
    pairs = [p256, ed25519 as unknown as typeof p256];
    expect(await isVerified(sender, signed(ed25519Signature))).toBe(false);
    expect(
      await isVerified(sender, { ...signed(ed25519Signature), arrivedAtMs: ARRIVED_AT_MS + 30_000 }),
    ).toBe(true);
  });

  it("make the delivery fail as unavailable, not as rejected, if no cached key matches and fetching fails", async () => {
    let isDown = false;
    const fetchPinned = async () => {
      if (isDown) throw new Error("away");
      return Buffer.from(jwks(p256));
    };
    const sender = senderOf({ verification: { ...base, keys: { from: "url", url } } }, { fetchPinned });
    const at = async (ms: number) =>
      isVerified(sender, { ...signed(ed25519Signature), arrivedAtMs: ARRIVED_AT_MS + ms });
    expect(await at(0)).toBe(false);
    isDown = true;
    for (const ms of [30_000, 40_000]) await expect(at(ms)).rejects.toThrow(UnavailableError);
    isDown = false;
    expect(await at(60_000)).toBe(false);
  });

  it("make the delivery fail as unavailable if the keys cannot be fetched or parsed", async () => {
    const keys = { from: "url", url };
    await expect(verify({ keys }, signed(ed25519Signature))).rejects.toThrow(UnavailableError);
    const fetchPinned = async () => Buffer.from("<html>");
    await expect(verify({ keys }, signed(ed25519Signature), { fetchPinned })).rejects.toThrow(
      UnavailableError,
    );
  });

  it("come from a URL in the request only if the URL matches a configured pattern", async () => {
    const fetched: string[] = [];
    const fetchPinned = async (address: string) => {
      fetched.push(address);
      return Buffer.from(pem(ed25519.publicKey));
    };
    const keys = {
      from: "request",
      source: { in: "header", name: "x-cert" },
      pinned: ["https://sns.*.example.com/Certs-*.pem"],
    };
    const at = (address: string) =>
      verify({ keys }, signed(ed25519Signature, { "x-cert": address }), { fetchPinned });
    expect(await at("https://sns.eu-1.example.com/Certs-a1.pem")).toBe(true);
    for (const other of [
      "https://sns.eu.example.com.evil.test/Certs-a.pem",
      "http://sns.eu.example.com/Certs-a.pem",
      "x",
    ]) {
      expect(await at(other)).toBe(false);
    }
    expect(fetched).toEqual(["https://sns.eu-1.example.com/Certs-a1.pem"]);
  });
});

describe("invalid settings of an asymmetric signature", () => {
  const keys = inline(pem(ed25519.publicKey));
  it.each<[string, object, string]>([
    ["no algorithm", { algorithm: undefined, keys }, "verification.algorithm"],
    [
      "a private key",
      { keys: inline(ed25519.privateKey.export({ format: "pem", type: "pkcs8" }).toString()) },
      "verification.keys.keys.0",
    ],
    ["a private JWK", { keys: inline(jwk(ed25519.privateKey)) }, "verification.keys.keys.0"],
    ["a symmetric key", { keys: inline('{"kty":"oct","k":"AAAA"}') }, "verification.keys.keys.0"],
    [
      "keys at a URL without TLS",
      { keys: { from: "url", url: "http://a.example/k" } },
      "verification.keys.url",
    ],
    [
      "a key URL in the request without allowed URL patterns",
      { keys: { from: "request", source: { in: "header", name: "x" } } },
      "verification.keys.pinned",
    ],
    [
      "an allowed URL pattern that matches any host",
      { keys: { from: "request", source: { in: "header", name: "x" }, pinned: ["https://*.com/x"] } },
      "verification.keys.pinned.0",
    ],
    [
      "secrets that are both keys and part of the signed text",
      { keys: { from: "secrets" }, template: "{{secret}}{{body}}" },
      "verification.template",
    ],
  ])("are reported with the path of the invalid field: %s", (_, settings, field) => {
    expect(Object.keys(findingsOf({ verification: { ...base, ...settings } }))).toContain(field);
  });

  it("are reported with the path of a secret that is not a public key", () => {
    const verification = { ...base, keys: { from: "secrets" } };
    const value = createHash("sha256").update("x").digest("hex").slice(2);
    expect(findingsOf({ verification, secrets: [{ value }] })).toHaveProperty(["secrets.0.value"]);
  });
});
