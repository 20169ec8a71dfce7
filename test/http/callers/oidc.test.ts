import type { CryptoKey } from "jose";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { createOidcIssuer } from "../../../src/http/callers/oidc.ts";
import { UnavailableError } from "../../../src/lib/errors.ts";
import { createTestApi, type TestApi } from "../../support/api.ts";
import { createTestIam, type TestIam } from "../../support/iam.ts";
import { moveMonotonicClock } from "../../support/moved-clock.ts";
import { AUDIENCE, type IssuerKey, startTestIssuer, type TestIssuer } from "../../support/oidc-issuer.ts";

/** Generating this key is fast. */
const QUICK = { alg: "ES256" };

/** Returns only the subject. */
const verifierOf = ({ issuer }: TestIssuer, unknownKeyCooldownMs?: number) => {
  const { verify } = createOidcIssuer({
    issuer,
    audience: AUDIENCE,
    clock: Date.now,
    ...(unknownKeyCooldownMs === undefined ? {} : { unknownKeyCooldownMs }),
  });
  return { verify: async (token: string) => (await verify(token))?.subject };
};

describe("tokens of an OpenID Connect issuer", () => {
  let issuer: TestIssuer;
  let key: IssuerKey;
  beforeAll(async () => {
    issuer = await startTestIssuer();
    key = await issuer.addKey("first");
  });
  afterAll(() => issuer[Symbol.asyncDispose]());

  it.each([
    "RS256",
    "PS256",
    "ES256",
    "ES512",
    "EdDSA",
  ])("are accepted if signed with a published %s key", async (alg) => {
    const own = await issuer.addKey(`key of ${alg}`, { alg });
    expect(await verifierOf(issuer).verify(await issuer.sign(own))).toBe("someone");
  });

  it("are accepted with several audiences, and with times that are wrong by a few seconds", async () => {
    const { verify } = verifierOf(issuer);
    expect(await verify(await issuer.sign(key, { aud: ["other", AUDIENCE] }))).toBe("someone");
    const nowSeconds = Math.floor(Date.now() / 1_000);
    expect(await verify(await issuer.sign(key, { exp: nowSeconds - 5 }))).toBe("someone");
    expect(await verify(await issuer.sign(key, { nbf: nowSeconds + 5 }))).toBe("someone");
  });

  it("are rejected if a claim, the signature, the algorithm or the format is wrong", async () => {
    const { verify } = verifierOf(issuer);
    const nowSeconds = Math.floor(Date.now() / 1_000);
    const stranger = await issuer.addKey("stranger", { published: false });
    const [header = "", payload = "", signature = ""] = (await issuer.sign(key)).split(".");
    const headed = (fields: object) => Buffer.from(JSON.stringify(fields)).toString("base64url");
    const publicKeyAsSecret = { ...key, alg: "HS256", privateKey: await secretOf(key) };
    const wrong: Record<string, string> = {
      audience: await issuer.sign(key, { aud: "other" }),
      "no audience": await issuer.sign(key, { aud: undefined }),
      issuer: await issuer.sign(key, { iss: `${issuer.issuer}/` }),
      expired: await issuer.sign(key, { exp: nowSeconds - 60 }),
      "without an expiry": await issuer.sign(key, { exp: undefined }),
      "not yet valid": await issuer.sign(key, { nbf: nowSeconds + 60 }),
      "without a subject": await issuer.sign(key, { sub: undefined }),
      "an empty subject": await issuer.sign(key, { sub: "" }),
      "a subject with NUL": await issuer.sign(key, { sub: "a\0b" }),
      "a long subject": await issuer.sign(key, { sub: "x".repeat(256) }),
      "signed with another key under this key's id": await issuer.sign({ ...stranger, kid: key.kid }),
      "an unknown key": await issuer.sign(stranger),
      "signed with the public key as a secret": await issuer.sign(publicKeyAsSecret),
      none: `${headed({ alg: "none" })}.${payload}.`,
      "none with a signature": `${headed({ alg: "none", kid: key.kid })}.${payload}.${signature}`,
      "another algorithm than the key's": `${headed({ alg: "PS256", kid: key.kid })}.${payload}.${signature}`,
      "a key of its own": `${headed({ alg: "RS256", jwk: stranger.jwk })}.${payload}.${signature}`,
      "unknown critical header": `${headed({ alg: "RS256", kid: key.kid, crit: ["x"], x: 1 })}.${payload}.${signature}`,
      truncated: `${header}.${payload}`,
    };
    for (const [what, token] of Object.entries(wrong)) {
      expect([what, await verify(token)]).toEqual([what, undefined]);
    }
  });
});

describe("signing keys of an OpenID Connect issuer", () => {
  it("are fetched once and cached for any number of tokens", async () => {
    await using issuer = await startTestIssuer();
    const key = await issuer.addKey("a", QUICK);
    const { verify } = verifierOf(issuer);
    await Promise.all(Array.from({ length: 20 }, async () => verify(await issuer.sign(key))));
    expect(issuer.asked).toEqual(["/.well-known/openid-configuration", "/jwks"]);
  });

  it("are fetched again for a token with an unknown key id, but not repeatedly in a short time", async () => {
    await using issuer = await startTestIssuer();
    const first = await issuer.addKey("a", QUICK);
    const hasty = verifierOf(issuer, 0);
    const patient = verifierOf(issuer);
    for (const { verify } of [hasty, patient]) expect(await verify(await issuer.sign(first))).toBe("someone");
    const second = await issuer.addKey("b", QUICK);
    const before = issuer.asked.length;
    expect(await hasty.verify(await issuer.sign(second))).toBe("someone");
    expect(issuer.asked.length - before).toBe(1);
    for (let i = 0; i < 10; i++) expect(await patient.verify(await issuer.sign(second))).toBeUndefined();
    expect(issuer.asked.length - before).toBe(1);
  });

  it("are found if the issuer URL has a path, with or without a trailing slash", async () => {
    for (const path of ["/realms/a", "/realms/b/"]) {
      await using issuer = await startTestIssuer({ path });
      const key = await issuer.addKey("a", QUICK);
      expect(await verifierOf(issuer).verify(await issuer.sign(key))).toBe("someone");
    }
  });

  it("are fetched again one second after a failure, and until then tokens receive 503 instead of 401", async () => {
    using clock = moveMonotonicClock();
    await using issuer = await startTestIssuer();
    const key = await issuer.addKey("a", QUICK);
    const { verify } = verifierOf(issuer);
    const token = await issuer.sign(key);
    const discovery = "/.well-known/openid-configuration";
    const answers = {
      [discovery]: [
        { status: 500 },
        { status: 302, headers: { location: "/jwks" } },
        { body: "not json" },
        { body: '{"issuer":"https://other.example"}' },
        { body: JSON.stringify({ issuer: issuer.issuer, jwks_uri: "file:///etc/passwd" }) },
        { body: `"${"x".repeat(2 * 1024 * 1024)}"` },
      ],
      "/jwks": [{ status: 503 }, { body: '{"keys":"none"}' }],
    };
    for (const [path, list] of Object.entries(answers)) {
      for (const answer of list) {
        const fresh = verifierOf(issuer);
        issuer.instead.set(path, () => answer);
        await expect(fresh.verify(token)).rejects.toBeInstanceOf(UnavailableError);
      }
      issuer.instead.clear();
    }
    issuer.instead.set(discovery, () => ({ status: 500 }));
    await expect(verify(token)).rejects.toBeInstanceOf(UnavailableError);
    issuer.instead.clear();
    clock.ahead(1_000);
    expect(await verify(token)).toBe("someone");
  });

  it("are not fetched again within one second after a failure", async () => {
    await using issuer = await startTestIssuer();
    const token = await issuer.sign(await issuer.addKey("a", QUICK));
    const { verify } = verifierOf(issuer);
    issuer.instead.set("/.well-known/openid-configuration", () => ({ status: 500 }));
    // The clock does not move, so a slow machine cannot exceed the second.
    const clock = vi.spyOn(performance, "now").mockReturnValue(1_000_000);
    for (let i = 0; i < 10; i++) await expect(verify(token)).rejects.toBeInstanceOf(UnavailableError);
    clock.mockRestore();
    expect(issuer.asked).toHaveLength(1);
  });

  it("are still used while the issuer is down, even after a token with an unknown key id", async () => {
    await using issuer = await startTestIssuer();
    const key = await issuer.addKey("a", QUICK);
    const stranger = await issuer.addKey("b", { ...QUICK, published: false });
    const { verify } = verifierOf(issuer, 0);
    expect(await verify(await issuer.sign(key))).toBe("someone");
    issuer.instead.set("/jwks", () => ({ status: 500 }));
    await expect(verify(await issuer.sign(stranger))).rejects.toBeInstanceOf(UnavailableError);
    expect(await verify(await issuer.sign(key))).toBe("someone");
  });
});

describe("a caller with a token of an OpenID Connect issuer", () => {
  let issuer: TestIssuer;
  let key: IssuerKey;
  let api: TestApi;
  let iam: TestIam;
  beforeAll(async () => {
    issuer = await startTestIssuer();
    key = await issuer.addKey("a", QUICK);
    api = await createTestApi({ callers: { oidcIssuer: issuer.issuer, oidcAudience: AUDIENCE } });
    iam = await createTestIam(api.database);
  });
  afterAll(async () => {
    await api[Symbol.asyncDispose]();
    await issuer[Symbol.asyncDispose]();
  });

  const callWith = async (
    { app }: Pick<TestApi, "app">,
    token: string,
    options: { organizationId?: string | undefined; method?: string } = {},
  ) => {
    const { organizationId, method = "GET" } = options;
    const response = await app.request("/v1/blueprints", {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        ...(organizationId === undefined ? {} : { "x-organization-id": organizationId }),
      },
    });
    const body = (await response.json()) as { code?: string; message?: string };
    return { status: response.status, body };
  };
  const call = async (sub: string, options: { organizationId?: string; method?: string } = {}) =>
    callWith(api, await issuer.sign(key, { sub }), { organizationId: iam.organizationId, ...options });

  let names = 0;
  /** Creates an account with its own identity at the issuer. */
  async function person(options: { status?: "active" | "pending"; organizationId?: string } = {}) {
    const sub = `person-${names++}`;
    const accountId = await iam.addAccount(options);
    const { organizationId = iam.organizationId } = options;
    await iam.addIdentity(accountId, { provider: issuer.issuer, identifier: sub, organizationId });
    return { sub, accountId };
  }

  it("acts as the account that is linked to the token's subject, with the permissions of the account's membership and roles", async () => {
    const { sub, accountId } = await person();
    const roleIds = [await iam.addRole(["blueprints.read"])];
    await iam.addMembership(accountId, { roleIds, permissions: ["apps.read"] });
    expect((await call(sub)).status).toBe(200);
    const written = await call(sub, { method: "POST" });
    expect([written.status, written.body.message]).toEqual([
      403,
      expect.stringContaining("blueprints.write"),
    ]);
    const line = api.lines.findLast(({ route }) => route === "/v1/blueprints");
    expect(line).toMatchObject({ accountId, organizationId: iam.organizationId });
    expect(line).not.toHaveProperty("keyId");
  });

  it("is rejected if the token's subject is not linked to an active account", async () => {
    expect((await call("nobody")).status).toBe(401);
    const pending = await person({ status: "pending" });
    await iam.addMembership(pending.accountId, { permissions: ["*"] });
    expect((await call(pending.sub)).status).toBe(401);
    const elsewhere = await iam.addAccount();
    await iam.addMembership(elsewhere, { permissions: ["*"] });
    await iam.addIdentity(elsewhere, { provider: "org", identifier: "elsewhere" });
    expect((await call("elsewhere")).status).toBe(401);
    const stranger = await person();
    expect((await call(stranger.sub)).status).toBe(403);
  });

  it("receives the same error for an unknown organization as for an organization without a membership", async () => {
    const { sub, accountId } = await person();
    await iam.addMembership(accountId, { permissions: ["blueprints.read"] });
    const unplaced = await callWith(api, await issuer.sign(key, { sub }));
    expect([unplaced.status, unplaced.body.message]).toEqual([
      403,
      expect.stringContaining("X-Organization-Id"),
    ]);
    expect((await call(sub)).status).toBe(200);
    const foreign = await call(sub, { organizationId: await iam.addOrganization() });
    expect(foreign).toEqual(await call(sub, { organizationId: "org_none" }));
    expect(foreign.status).toBe(401);
  });

  it("can access an organization only as the account that this organization has linked to the token's subject", async () => {
    const sub = "captured";
    const attacker = await iam.addOrganization();
    const theirs = await iam.addAccount({ organizationId: attacker });
    await iam.addMembership(theirs, { organizationId: attacker, permissions: ["blueprints.read"] });
    await iam.addIdentity(theirs, { provider: issuer.issuer, identifier: sub, organizationId: attacker });
    expect((await call(sub)).status).toBe(401);
    const own = await iam.addAccount();
    await iam.addMembership(own, { permissions: ["blueprints.read"] });
    // The account is also a member of the attacker's organization. That organization knows the subject as another account, so this grants
    // no access.
    await iam.addMembership(own, { organizationId: attacker, permissions: ["*"] });
    await iam.addIdentity(own, { provider: issuer.issuer, identifier: sub });
    // Any change of permissions clears the cache.
    await api.call.post("/iam/roles", { name: "any" });
    const accountIn = async (organizationId: string) => {
      expect((await call(sub, { organizationId })).status).toBe(200);
      expect((await call(sub, { organizationId, method: "POST" })).status).toBe(403);
      return api.lines.findLast(({ route }) => route === "/v1/blueprints")?.accountId;
    };
    expect(await accountIn(iam.organizationId)).toBe(own);
    expect(await accountIn(attacker)).toBe(theirs);
  });

  it("acts for the organization in the configured token claim, or for the configured organization", async () => {
    const other = await iam.addOrganization();
    await using placing = await createTestApi({
      callers: {
        oidcIssuer: issuer.issuer,
        oidcAudience: AUDIENCE,
        oidcOrganizationClaim: "https://inlet.example/org",
      },
    });
    const home = await createTestIam(placing.database);
    const accountId = await home.addAccount();
    await home.addMembership(accountId, { permissions: ["blueprints.read"] });
    await home.addIdentity(accountId, { provider: issuer.issuer, identifier: "placed" });
    const tokenFor = (organization?: unknown) =>
      issuer.sign(key, { sub: "placed", "https://inlet.example/org": organization });
    const { organizationId } = home;
    expect((await callWith(placing, await tokenFor(organizationId))).status).toBe(200);
    expect((await callWith(placing, await tokenFor(organizationId), { organizationId })).status).toBe(200);
    expect((await callWith(placing, await tokenFor(organizationId), { organizationId: other })).status).toBe(
      403,
    );
    expect((await callWith(placing, await tokenFor(other), { organizationId })).status).toBe(401);
    expect((await callWith(placing, await tokenFor())).status).toBe(403);
    expect((await callWith(placing, await tokenFor([organizationId]), { organizationId })).status).toBe(200);

    const set = createOidcIssuer({
      issuer: issuer.issuer,
      audience: AUDIENCE,
      organizationId: other,
      clock: Date.now,
    });
    expect(await set.verify(await tokenFor(organizationId))).toMatchObject({ organizationId: other });
  });

  it("can get an access token for one organization, which works until the link to the account is deleted", async () => {
    using clock = moveMonotonicClock();
    const { sub, accountId } = await person();
    await iam.addMembership(accountId, { permissions: ["blueprints.read", "iam.write"] });
    const { organizationId } = iam;
    const issued = api.as(await issuer.sign(key, { sub }));
    const answer = await issued.post("/auth/tokens", { organizationId });
    expect(answer).toMatchObject({ tokenType: "Bearer", expiresIn: expect.any(Number) });
    // The issuer's token is valid for five minutes.
    expect(answer.expiresIn).toBeLessThanOrEqual(300);
    const bound = api.as(answer.accessToken);
    expect((await bound("GET", "/blueprints")).status).toBe(200);
    expect((await bound("POST", "/blueprints", {})).status).toBe(403);
    const renewed = await bound.post("/auth/tokens", {});
    expect(renewed.expiresIn).toBe(900);
    expect((await api.as(renewed.accessToken)("POST", "/blueprints", {})).status).toBe(403);
    expect((await bound("POST", "/auth/tokens", { organizationId: "org_none" })).status).toBe(404);
    const elsewhere = { "x-organization-id": await iam.addOrganization() };
    expect((await bound("GET", "/blueprints", undefined, elsewhere)).status).toBe(403);

    expect(await issued.expectRejection("POST", "/auth/tokens", {})).toMatchObject({
      status: 400,
      paths: ["organizationId"],
    });
    expect((await issued("POST", "/auth/tokens", { organizationId: "org_none" })).status).toBe(401);
    const outsider = await person();
    const asOutsider = api.as(await issuer.sign(key, { sub: outsider.sub }));
    expect((await asOutsider("POST", "/auth/tokens", { organizationId })).status).toBe(403);

    await api.database.db.deleteFrom("identities").where("identifier", "=", sub).execute();
    clock.ahead(5_000);
    expect((await bound("GET", "/blueprints")).status).toBe(401);
    expect((await api.as(renewed.accessToken)("POST", "/auth/tokens", {})).status).toBe(401);
  });

  it("receives 503 while the issuer's signing keys are unavailable", async () => {
    await using gone = await startTestIssuer();
    const own = await gone.addKey("a", QUICK);
    gone.instead.set("/.well-known/openid-configuration", () => ({ status: 500 }));
    await using other = await createTestApi({
      callers: { oidcIssuer: gone.issuer, oidcAudience: AUDIENCE },
    });
    const answer = await other.as(await gone.sign(own))("GET", "/blueprints");
    expect([answer.status, answer.body.code]).toEqual([503, "unavailable"]);
    expect(answer.headers.get("retry-after")).toBe("1");
  });

  it("is rejected by a gateway that trusts no issuer", async () => {
    await using other = await createTestApi();
    expect((await other.as(await issuer.sign(key))("GET", "/blueprints")).status).toBe(401);
  });
});

/** Uses the text of the public key as a shared secret, as a verifier that trusts the header would. */
async function secretOf({ jwk }: IssuerKey): Promise<CryptoKey> {
  const bytes = new TextEncoder().encode(JSON.stringify(jwk));
  return crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
}
