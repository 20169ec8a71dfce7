import { SignJWT } from "jose";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createCallers } from "../../../src/data/accounts/callers.ts";
import { createAccessTokens } from "../../../src/http/callers/access-tokens.ts";
import { createIdentify } from "../../../src/http/callers/identify.ts";
import { createTestApi } from "../../support/api.ts";
import { createTestIam } from "../../support/iam.ts";
import { type MovedClock, moveMonotonicClock } from "../../support/moved-clock.ts";
import { opened } from "../../support/opened.ts";
import { until } from "../../support/until.ts";

const api = opened(createTestApi);
const iam = opened(() => createTestIam(api.database));

const statusOf = async (token: string, method = "GET", path = "/blueprints"): Promise<number> =>
  (await api.as(token)(method, path, method === "GET" ? undefined : {})).status;

/** Requests an access token for the key. */
async function accessTokenFor(key: string): Promise<string> {
  const answer = await api.as(key)("POST", "/auth/tokens");
  expect(answer.status).toBe(200);
  return answer.body.accessToken;
}

describe("at most five seconds after a change,", () => {
  const IN_FORCE_MS = 5_000;
  let clock: MovedClock;
  beforeAll(() => {
    clock = moveMonotonicClock();
  });
  afterAll(() => clock[Symbol.dispose]());

  it("an API key has the new permissions of its roles", async () => {
    const { db } = api.database;
    const roleId = await iam.addRole(["blueprints.read"]);
    const { token } = await iam.addKey({ roleIds: [roleId], permissions: ["apps.read"] });
    expect(await statusOf(token)).toBe(200);
    expect(await statusOf(token, "GET", "/apps")).toBe(200);
    expect(await statusOf(token, "POST")).toBe(403);
    await db
      .updateTable("roles")
      .set({ permissions: ["blueprints.write"] })
      .where("id", "=", roleId)
      .execute();
    clock.ahead(IN_FORCE_MS);
    expect(await statusOf(token)).toBe(403);
    expect(await statusOf(token, "POST")).toBe(400);
    expect(await statusOf(token, "GET", "/apps")).toBe(200);
  });

  it("an API key no longer works if the key was revoked or its account was disabled", async () => {
    const { db } = api.database;
    const revoked = await iam.addKey({ permissions: ["*"] });
    const accountId = await iam.addAccount();
    const orphaned = await iam.addKey({ permissions: ["*"], accountId });
    const tokens = [revoked.token, orphaned.token];
    for (const token of tokens) expect(await statusOf(token)).toBe(200);
    await db.updateTable("apiKeys").set({ revokedAt: new Date() }).where("id", "=", revoked.id).execute();
    await db.updateTable("accounts").set({ status: "disabled" }).where("id", "=", accountId).execute();
    clock.ahead(IN_FORCE_MS);
    for (const token of tokens) expect(await statusOf(token)).toBe(401);
  });

  it("requests with a known API key receive 503 if the database has gone down", async () => {
    await using other = await createTestApi();
    const { token } = await (await createTestIam(other.database)).addKey();
    // The response is 403 and only needs the key from the database.
    const call = async () => {
      const { status, body } = await other.as(token)("GET", "/blueprints");
      return `${status} ${body.code}`;
    };
    expect(await call()).toBe("403 permission_denied");
    const { connection } = other.database;
    const server = new pg.Client({ ...connection, database: "postgres" });
    await server.connect();
    await server.query(`ALTER DATABASE ${connection.database} ALLOW_CONNECTIONS false`);
    await server.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [
      connection.database,
    ]);
    clock.ahead(IN_FORCE_MS);
    expect(await call()).toBe("503 unavailable");
    expect((await other.as("ik_never_seen")("GET", "/blueprints")).status).toBe(503);
    await server.query(`ALTER DATABASE ${connection.database} ALLOW_CONNECTIONS true`);
    await server.end();
    await until(async () => (await call()) === "403 permission_denied");
  });

  it("an access token no longer works if its API key was revoked", async () => {
    const { token, id } = await iam.addKey({ permissions: ["*"] });
    const accessToken = await accessTokenFor(token);
    expect(await statusOf(accessToken)).toBe(200);
    const { db } = api.database;
    await db.updateTable("apiKeys").set({ revokedAt: new Date() }).where("id", "=", id).execute();
    clock.ahead(IN_FORCE_MS);
    expect(await statusOf(accessToken)).toBe(401);
  });
});

describe("an API key", () => {
  it("has no permissions from a role that belongs to another organization", async () => {
    const roleId = await iam.addRole(["blueprints.read"], await iam.addOrganization());
    const { token } = await iam.addKey({ roleIds: [roleId] });
    expect(await statusOf(token)).toBe(403);
  });

  it("stops working in the millisecond of its expiry, even if it is cached", async () => {
    const expiresAtMs = Date.now() + 3_600_000;
    const { token } = await iam.addKey({ permissions: ["*"], expiresAt: new Date(expiresAtMs) });
    let nowMs = expiresAtMs - 1;
    const clock = () => nowMs;
    const identify = createIdentify({
      callers: createCallers({ db: api.database.db }),
      accessTokens: createAccessTokens({ key: api.keyring.accessTokenKey, clock }),
      oidc: undefined,
      clock,
    });
    expect(await identify(token)).toMatchObject({ by: "apiKey" });
    nowMs = expiresAtMs;
    expect(await identify(token)).toEqual({ by: "nobody", why: "expired" });
    const past = await iam.addKey({ permissions: ["*"], expiresAt: new Date(Date.now() - 1) });
    expect(await statusOf(past.token)).toBe(401);
  });

  it("is reported as revoked or expired only to a caller that sends the complete key", async () => {
    const { db } = api.database;
    const messageFor = async (authorization?: string): Promise<string> => {
      const answer = await api.app.request(
        "/v1/blueprints",
        authorization ? { headers: { authorization } } : {},
      );
      expect(answer.status).toBe(401);
      return ((await answer.json()) as { message: string }).message;
    };
    const revoked = await iam.addKey({ permissions: ["*"] });
    await db.updateTable("apiKeys").set({ revokedAt: new Date() }).where("id", "=", revoked.id).execute();
    const expired = await iam.addKey({ expiresAt: new Date(Date.now() - 1) });
    const accountId = await iam.addAccount();
    const orphaned = await iam.addKey({ accountId });
    await db.updateTable("accounts").set({ status: "disabled" }).where("id", "=", accountId).execute();
    expect(await messageFor()).toMatch(/^A bearer token is required/);
    expect(await messageFor(revoked.token)).toMatch(/must have the form/);
    expect(await messageFor(`Bearer ${revoked.token}`)).toMatch(/was revoked/);
    expect(await messageFor(`Bearer ${expired.token}`)).toMatch(/has expired/);
    expect(await messageFor(`Bearer ${orphaned.token}`)).toMatch(/not active/);
    for (const token of [revoked.token.slice(0, -1), `${expired.token}0`, "ik_never_seen"])
      expect(await messageFor(`Bearer ${token}`)).toMatch(/is unknown/);
  });

  it("is rejected if X-Organization-Id names another organization", async () => {
    const { token } = await iam.addKey({ permissions: ["*"] });
    const status = async (organizationId: string) => {
      const headers = { authorization: `Bearer ${token}`, "x-organization-id": organizationId };
      return (await api.app.request("/v1/blueprints", { headers })).status;
    };
    expect(await status(iam.organizationId)).toBe(200);
    expect(await status(await iam.addOrganization())).toBe(403);
  });
});

describe("GET /auth/whoami", () => {
  it("returns the identity and permissions of the caller, and requires no permission", async () => {
    const token = await api.keyWith("apps.read", "blueprints.write");
    const asKey = await api.as(token).get("/auth/whoami");
    expect(asKey).toMatchObject({ by: "apiKey", permissions: ["apps.read", "blueprints.write"] });
    expect(asKey.organization.name).toBe("default");
    expect(await api.as(await accessTokenFor(token)).get("/auth/whoami")).toEqual({
      ...asKey,
      by: "accessToken",
    });
    expect((await api.as("ik_none")("GET", "/auth/whoami")).status).toBe(401);
  });
});

describe("POST /auth/tokens", () => {
  it("returns an access token that has the permissions of the API key for 15 minutes", async () => {
    const { token } = await iam.addKey({ permissions: ["blueprints.read"] });
    const answer = await api.as(token)("POST", "/auth/tokens");
    expect([answer.status, answer.body]).toEqual([
      200,
      { accessToken: expect.stringMatching(/^ey/), tokenType: "Bearer", expiresIn: 900 },
    ]);
    expect(await statusOf(answer.body.accessToken)).toBe(200);
    expect(await statusOf(answer.body.accessToken, "POST")).toBe(403);
    expect(JSON.stringify(answer.body)).not.toContain(token);
  });

  it("rejects a request with unknown fields or another organization", async () => {
    const { token } = await iam.addKey();
    const other = { organizationId: await iam.addOrganization() };
    for (const bearer of [token, await accessTokenFor(token)]) {
      expect((await api.as(bearer)("POST", "/auth/tokens", { scope: "*" })).status).toBe(400);
      expect((await api.as(bearer)("POST", "/auth/tokens", other)).status).toBe(404);
      expect(
        (await api.as(bearer)("POST", "/auth/tokens", { organizationId: iam.organizationId })).status,
      ).toBe(200);
    }
  });

  it("renews an access token until 12 hours after the sign-in, with the current permissions of its key, and records it", async () => {
    const { token, id } = await iam.addKey({ permissions: ["blueprints.read"] });
    const tokens = createAccessTokens({ key: api.keyring.accessTokenKey, clock: Date.now });
    const signedInAtMs = Math.floor((Date.now() - 12 * 3_600_000 + 60_000) / 1_000) * 1_000;
    const renewed = await api.as(await tokens.issue(id, 900, signedInAtMs))("POST", "/auth/tokens");
    expect([renewed.status, renewed.body.expiresIn]).toEqual([200, 900]);
    const { accessToken } = renewed.body;
    expect(await tokens.open(accessToken)).toEqual({ id, signedInAtMs });
    expect([await statusOf(accessToken), await statusOf(accessToken, "POST")]).toEqual([200, 403]);

    const late = await api.as(await tokens.issue(id, 900, signedInAtMs - 61_000))("POST", "/auth/tokens");
    expect([late.status, late.body.code, late.body.message]).toEqual([
      403,
      "permission_denied",
      expect.stringContaining("older than 12 hours"),
    ]);

    const since = Date.now();
    const again = await accessTokenFor(await accessTokenFor(token));
    expect(Math.abs(((await tokens.open(again))?.signedInAtMs ?? 0) - since)).toBeLessThan(5_000);
    const records = await api.database.db
      .selectFrom("audit")
      .select(["action", "entityId", "keyId"])
      .where("entity", "=", "accessToken")
      .where("entityId", "=", id)
      .orderBy("id")
      .execute();
    expect(records.map(({ action }) => action)).toEqual(["renew", "issue", "renew"]);
    expect(records.every(({ keyId }) => keyId === id)).toBe(true);
  });

  it("stops renewing an access token when its key is revoked", async () => {
    using clock = moveMonotonicClock();
    const { token, id } = await iam.addKey();
    const accessToken = await accessTokenFor(token);
    await api.database.db
      .updateTable("apiKeys")
      .set({ revokedAt: new Date() })
      .where("id", "=", id)
      .execute();
    clock.ahead(5_000);
    expect((await api.as(accessToken)("POST", "/auth/tokens")).status).toBe(401);
    expect(await statusOf(accessToken)).toBe(401);
  });
});

describe("an access token", () => {
  const key = () => api.keyring.accessTokenKey;

  it("is accepted by every gateway with the same master key", async () => {
    const { token, id } = await iam.addKey();
    const others = createAccessTokens({ key: key(), clock: Date.now });
    expect(await others.verify(await accessTokenFor(token))).toBe(id);
  });

  it("is rejected after it expires", async () => {
    const { id } = await iam.addKey({ permissions: ["*"] });
    let nowMs = Date.now();
    const tokens = createAccessTokens({ key: key(), clock: () => nowMs });
    const token = await tokens.issue(id, 900);
    nowMs += 899_000;
    expect(await tokens.verify(token)).toBe(id);
    nowMs += 2_000;
    expect(await tokens.verify(token)).toBeUndefined();
  });

  it("is rejected if its signature, algorithm, type, issuer, audience or any time is wrong", async () => {
    const { id } = await iam.addKey({ permissions: ["*"] });
    const secret = new Uint8Array(key());
    const make = (
      change: { header?: object; claims?: object; secret?: Uint8Array } = {},
      alg = "HS256",
    ): Promise<string> => {
      const nowSeconds = Math.floor(Date.now() / 1_000);
      const claims = { iss: "inlet", aud: "inlet", sub: id, iat: nowSeconds, exp: nowSeconds + 60 };
      return new SignJWT({ ...claims, ...change.claims })
        .setProtectedHeader({ alg, typ: "at+jwt", ...change.header })
        .sign(change.secret ?? secret);
    };
    expect(await statusOf(await make())).toBe(200);
    const [header = "", payload = "", signature = ""] = (await make()).split(".");
    const none = Buffer.from(JSON.stringify({ alg: "none", typ: "at+jwt" })).toString("base64url");
    const otherKey = Buffer.from(JSON.stringify({ iss: "inlet", aud: "inlet", sub: "key_x", exp: 9e9 }));
    const forged = [
      await make({ secret: new Uint8Array(32) }),
      await make({ secret: Buffer.concat([secret, secret]) }, "HS512"),
      await make({ header: { typ: "JWT" } }),
      await make({ claims: { aud: "other" } }),
      await make({ claims: { exp: undefined } }),
      await make({ claims: { sub: undefined } }),
      await make({ claims: { exp: 1 } }),
      await make({ claims: { nbf: Math.floor(Date.now() / 1_000) + 60 } }),
      await make({ claims: { sub: "key_unknown" } }),
      `${none}.${payload}.`,
      `${none}.${payload}.${signature}`,
      `${header}.${otherKey.toString("base64url")}.${signature}`,
      `${header}.${payload}.${signature.slice(0, -4)}AAAA`,
      `${header}.${payload}`,
      `${header}.${payload}.${signature}.x`,
    ];
    for (const token of forged) expect([token, await statusOf(token)]).toEqual([token, 401]);
  });
});
