import { createHash, createHmac, generateKeyPairSync, type KeyObject } from "node:crypto";
import { SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { UnavailableError } from "../../../src/lib/errors.ts";
import {
  ARRIVED_AT_MS,
  findingsOf,
  isVerified,
  requestOf,
  type SenderOptions,
  senderOf,
} from "../support.ts";

const NOW_SECONDS = ARRIVED_AT_MS / 1_000;
const rsa = generateKeyPairSync("rsa", { modulusLength: 2_048 });
const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const pem = (key: KeyObject): string => key.export({ format: "pem", type: "spki" }).toString();
const jwksOf = (...keys: readonly [id: string, key: KeyObject, more?: object][]): string =>
  JSON.stringify({
    keys: keys.map(([kid, key, more]) => ({ ...key.export({ format: "jwk" }), kid, ...more })),
  });

const base = { scheme: "jwt", algorithms: ["RS256"], keys: { from: "settings", keys: [pem(rsa.publicKey)] } };
const claims = { iss: "https://issuer.example", aud: "inlet", iat: NOW_SECONDS, exp: NOW_SECONDS + 600 };

function tokenOf(
  payload: object = claims,
  header: object = {},
  key: KeyObject | Uint8Array = rsa.privateKey,
) {
  return new SignJWT({ ...payload }).setProtectedHeader({ alg: "RS256", ...header }).sign(key);
}
const parts = (token: string, body = "{}") => ({ body, headers: { authorization: `Bearer ${token}` } });
const verify = async (settings: object, token: string, options?: SenderOptions): Promise<boolean> =>
  isVerified(senderOf({ verification: { ...base, ...settings } }, options), parts(token));

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");

describe("a JSON Web Token", () => {
  it("can be in a header, a query parameter or the body", async () => {
    const token = await tokenOf();
    expect(await verify({}, token)).toBe(true);
    const inQuery = senderOf({ verification: { ...base, source: { in: "query", name: "jwt" } } });
    const verified = await inQuery.verify(requestOf({ target: `/hooks/x?jwt=${token}&a=1` }));
    expect(verified.ok && { ...verified.value.query }).toEqual({ a: "1" });
    const inBody = senderOf({ verification: { ...base, source: { in: "body", name: "$.token" } } });
    expect(await isVerified(inBody, { body: JSON.stringify({ token }) })).toBe(true);
  });

  it("is rejected if one of its parts is changed, missing or added", async () => {
    const token = await tokenOf();
    const [header = "", payload = "", signature = ""] = token.split(".");
    const others = [
      `${header}.${encode({ ...claims, aud: "other" })}.${signature}`,
      `${header}.${payload}.`,
      `${header}.${payload}`,
      `${header}.${payload}.${signature}.x`,
      `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
      "",
    ];
    for (const other of others) expect([other, await verify({}, other)]).toEqual([other, false]);
  });

  it("is rejected if it is unsigned, or signed with the public key as a shared secret", async () => {
    for (const alg of ["none", "None", "NONE", ""]) {
      expect(await verify({}, `${encode({ alg })}.${encode(claims)}.`)).toBe(false);
      expect(await verify({}, `${encode({ alg })}.${encode(claims)}.AA`)).toBe(false);
    }
    const content = `${encode({ alg: "HS256" })}.${encode(claims)}`;
    const forged = createHmac("sha256", pem(rsa.publicKey)).update(content).digest("base64url");
    expect(await verify({}, `${content}.${forged}`)).toBe(false);
    const verification = { ...base, keys: { from: "secrets" } };
    const bySecrets = senderOf({ verification, secrets: [{ value: pem(rsa.publicKey) }] });
    expect(await isVerified(bySecrets, parts(`${content}.${forged}`))).toBe(false);
    expect(await isVerified(bySecrets, parts(await tokenOf()))).toBe(true);
  });

  it("is rejected with an algorithm that the settings do not list", async () => {
    expect(await verify({}, await tokenOf(claims, { alg: "RS512" }))).toBe(false);
    expect(await verify({ algorithms: ["RS256", "RS512"] }, await tokenOf(claims, { alg: "RS512" }))).toBe(
      true,
    );
    expect(await verify({ algorithms: ["ES256"] }, await tokenOf())).toBe(false);
  });

  it("is rejected if it has an unknown critical header", async () => {
    const critical = `${encode({ alg: "RS256", crit: ["x"], x: 1 })}.${encode(claims)}`;
    expect(await verify({}, `${critical}.AAAA`)).toBe(false);
  });

  it("is rejected after its expiry time plus the allowed clock skew", async () => {
    const verifyExpiry = (exp: number | undefined, settings = {}) =>
      tokenOf({ ...claims, exp }).then((token) => verify({ clockSkewSeconds: 60, ...settings }, token));
    expect(await verifyExpiry(NOW_SECONDS - 59)).toBe(true);
    expect(await verifyExpiry(NOW_SECONDS - 60)).toBe(false);
    expect(await verifyExpiry(undefined)).toBe(false);
    expect(await verifyExpiry(undefined, { requireExpiry: false })).toBe(true);
    expect(await verify({}, await tokenOf({ ...claims, nbf: NOW_SECONDS + 61 }))).toBe(false);
    const verifyIssuedAt = (iat: number | undefined) =>
      tokenOf({ ...claims, iat }).then((token) => verify({ maxAgeSeconds: 300, clockSkewSeconds: 0 }, token));
    expect([
      await verifyIssuedAt(NOW_SECONDS - 300),
      await verifyIssuedAt(NOW_SECONDS - 301),
      await verifyIssuedAt(undefined),
    ]).toEqual([true, false, false]);
  });

  it("is accepted only with the configured issuer, audience and claims", async () => {
    const token = await tokenOf({ ...claims, email: "a@x", email_verified: true });
    expect(await verify({ issuer: ["accounts.example", claims.iss], audience: "inlet" }, token)).toBe(true);
    expect(await verify({ issuer: "accounts.example" }, token)).toBe(false);
    expect(await verify({ audience: ["other"] }, token)).toBe(false);
    expect(await verify({ claims: { email: "a@x", email_verified: true } }, token)).toBe(true);
    expect(await verify({ claims: { email: "b@x" } }, token)).toBe(false);
    expect(await verify({ claims: { email_verified: "true" } }, token)).toBe(false);
    expect(await verify({ claims: { constructor: "Object" } }, token)).toBe(false);
  });

  it("with a body hash claim is accepted only if the body matches the hash", async () => {
    const bodyHash = { claim: "sha256" };
    const hash = createHash("sha256").update("{}").digest("hex");
    const sender = senderOf({ verification: { ...base, bodyHash } });
    const token = await tokenOf({ ...claims, sha256: hash });
    expect(await isVerified(sender, parts(token))).toBe(true);
    expect(await isVerified(sender, parts(token, "{ }"))).toBe(false);
    expect(await isVerified(sender, parts(await tokenOf()))).toBe(false);
  });

  it("supplies the delivery id and a digest for dedupe if the settings say so", async () => {
    const settings = { deliveryIdClaim: "jti", bindDedupe: "signedBytes" };
    const sender = senderOf({ verification: { ...base, ...settings } });
    const verified = await sender.verify(requestOf(parts(await tokenOf({ ...claims, jti: "j1" }))));
    expect(verified).toMatchObject({
      ok: true,
      value: { deliveryId: "j1", boundTo: expect.stringMatching(/^[\w-]{43}$/) },
    });
    expect(await isVerified(sender, parts(await tokenOf({ ...claims, jti: "x".repeat(257) })))).toBe(false);
  });

  it("is accepted if the claim named by secretClaim equals one of the channel's secrets", async () => {
    const senderWith = (...emails: readonly string[]) =>
      senderOf({
        verification: { ...base, secretClaim: "email" },
        secrets: emails.map((value) => ({ value })),
      });
    const token = parts(await tokenOf({ ...claims, email: "push@ours.example" }));
    expect(await isVerified(senderWith("other@ours.example", "push@ours.example"), token)).toBe(true);
    expect(await isVerified(senderWith("other@ours.example"), token)).toBe(false);
    expect(await isVerified(senderWith(), token)).toBe(false);
    expect(await isVerified(senderWith("push@ours.example"), parts(await tokenOf()))).toBe(false);
    const verification = { ...base, keys: { from: "secrets" }, secretClaim: "email" };
    expect(Object.keys(findingsOf({ verification }))).toEqual(["verification.secretClaim"]);
  });

  it("is accepted if it is signed with any shared secret of the channel", async () => {
    const secrets = [{ value: "old" }, { value: "a secret of thirty-two characters" }];
    const verification = { scheme: "jwt", algorithms: ["HS256"], keys: { from: "secrets" } };
    const sender = senderOf({ verification, secrets });
    const signBy = (secret: string) => tokenOf(claims, { alg: "HS256" }, Buffer.from(secret));
    expect(await isVerified(sender, parts(await signBy("a secret of thirty-two characters")))).toBe(true);
    expect(await isVerified(sender, parts(await signBy("another secret of many characters")))).toBe(false);
    expect(await isVerified(senderOf({ verification }), parts(await signBy("x")))).toBe(false);
  });
});

describe("the public keys of a JSON Web Token's issuer", () => {
  const url = "https://issuer.example/jwks";
  const fetched = (jwks: () => string): SenderOptions => ({ fetchPinned: async () => Buffer.from(jwks()) });
  const settings = { algorithms: ["RS256", "ES256"], keys: { from: "url", url } };

  it("are selected by the token's key id", async () => {
    const options = fetched(() => jwksOf(["a", rsa.publicKey], ["b", ec.publicKey]));
    expect(await verify(settings, await tokenOf(claims, { kid: "a" }), options)).toBe(true);
    expect(
      await verify(settings, await tokenOf(claims, { alg: "ES256", kid: "b" }, ec.privateKey), options),
    ).toBe(true);
    expect(await verify(settings, await tokenOf(claims, { kid: "b" }), options)).toBe(false);
    expect(await verify(settings, await tokenOf(), options)).toBe(true);
  });

  it("are used only for the algorithm and the use that the key set declares for each key", async () => {
    const token = await tokenOf(claims, { kid: "a" });
    expect(
      await verify(
        settings,
        token,
        fetched(() => jwksOf(["a", rsa.publicKey, { alg: "RS512" }])),
      ),
    ).toBe(false);
    const unused = fetched(() => jwksOf(["a", rsa.publicKey, { use: "enc" }], ["b", ec.publicKey]));
    expect(await verify(settings, token, unused)).toBe(false);
  });

  it("are fetched again for an unknown key id, at most every 30 seconds", async () => {
    let calls = 0;
    const options = fetched(() =>
      ++calls === 1 ? jwksOf(["old", ec.publicKey]) : jwksOf(["a", rsa.publicKey]),
    );
    const sender = senderOf({ verification: { ...base, ...settings } }, options);
    const request = parts(await tokenOf(claims, { kid: "a" }));
    expect(await isVerified(sender, request)).toBe(false);
    expect(calls).toBe(1);
    expect(await isVerified(sender, { ...request, arrivedAtMs: ARRIVED_AT_MS + 30_000 })).toBe(true);
    expect(calls).toBe(2);
  });

  it("make the delivery fail as unavailable if the keys cannot be fetched", async () => {
    await expect(verify(settings, await tokenOf())).rejects.toThrow(UnavailableError);
  });
});

it.each<[string, object, string]>([
  ["no algorithm", { algorithms: [] }, "verification.algorithms"],
  ["the algorithm none", { algorithms: ["none"] }, "verification.algorithms.0"],
  [
    "algorithms for both secrets and public keys",
    { algorithms: ["RS256", "HS256"] },
    "verification.algorithms",
  ],
  [
    "a shared-secret algorithm whose key is in the public settings",
    { algorithms: ["HS256"] },
    "verification.keys",
  ],
  ["an invalid key", { keys: { from: "settings", keys: ["x"] } }, "verification.keys.keys.0"],
])("invalid JWT settings are rejected: %s", (_, settings, field) => {
  expect(Object.keys(findingsOf({ verification: { ...base, ...settings } }))).toContain(field);
});
