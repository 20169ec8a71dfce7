import { createServer } from "node:http";
import { sql } from "kysely";
import { Events } from "oauth2-mock-server";
import { afterEach, describe, expect, it } from "vitest";
import { readTokens } from "../../src/data/connections/connection-tokens.ts";
import { noteConnectionUse } from "../../src/data/connections/connections.ts";
import { listenLocally } from "../support/local-server.ts";
import { CLIENT } from "../support/oauth-provider.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { REQUEST, rotate, signal, startConnectionsRig, tokenOf } from "./connections-support.ts";

const rig = opened(startConnectionsRig);
afterEach(() => rig.reset());

describe("the credentials of a connection", () => {
  it.each([
    ["apiKey", { name: "X-Key", value: "v", prefix: "k " }, { "x-key": "k v" }, ""],
    ["apiKey", { in: "query", name: "key", value: "a&b" }, {}, "?key=a%26b"],
    ["basic", { username: "jürgen", password: "p:ä" }, { authorization: "Basic asO8cmdlbjpwOsOk" }, ""],
    ["bearer", { token: "t" }, { authorization: "Bearer t" }, ""],
    [
      "custom",
      { fields: { a: "1", b: "2" }, headers: { "X-Auth": "{{a}}/{{ b }}" }, query: { s: "{{b}}" } },
      { "x-auth": "1/2" },
      "?s=2",
    ],
  ])("are added to a request and marked as secret (%s)", async (kind, config, headers, query) => {
    const authorized = await rig
      .startWorker()(await rig.create(config, kind))
      .authorize(REQUEST, { signal });
    expect(authorized).toEqual({
      request: { ...REQUEST, url: REQUEST.url + query, headers: { ...REQUEST.headers, ...headers } },
      secretHeaders: Object.keys(headers),
      secretQuery: query === "" ? [] : [query.slice(1, query.indexOf("="))],
      generation: undefined,
    });
  });

  it("are added to the start of the path", async () => {
    const config = { fields: { token: "123:abc" }, path: "/bot{{token}}" };
    const authorized = await rig
      .startWorker()(await rig.create(config, "custom"))
      .authorize(REQUEST, { signal });
    const { origin, pathname } = new URL(REQUEST.url);
    expect(authorized).toMatchObject({
      request: { url: `${origin}/bot123:abc${pathname}` },
      secretPath: "/bot123:abc",
    });
  });

  it.each([
    "http://api.example.com/",
    "https://api.example.com:8443/",
    "https://api.example.com./",
    "https://api.example.com.evil.example/",
    "https://evil.example/?https://api.example.com",
    "https://api.example.com@evil.example/",
    "nothing",
  ])("are not sent to %s, because its origin is not allowed", async (url) => {
    const credentials = rig.startWorker()(await rig.create({ token: "t" }, "bearer"));
    await expect(credentials.authorize({ ...REQUEST, url }, { signal })).rejects.toMatchObject({
      name: "OriginNotAllowedError",
    });
  });

  it("have the time of their last use stored at most once per minute", async () => {
    const id = await rig.create({ token: "t" }, "bearer");
    const usedAt = async () => (await rig.api.call.get(`/connections/${id}`)).lastUsedAt;
    await rig.startWorker()(id).authorize(REQUEST, { signal });
    await until(async () => (await usedAt()) !== null);
    const first = await usedAt();
    const { db } = rig.api.database;
    await noteConnectionUse(db, id);
    expect(await usedAt()).toBe(first);
    const longAgo = new Date(Date.parse(first) - 61_000);
    await db.updateTable("connections").set({ lastUsedAt: longAgo }).where("id", "=", id).execute();
    await noteConnectionUse(db, id);
    expect(Date.parse(await usedAt())).toBeGreaterThan(longAgo.getTime());
  });
});

describe("the access token of an OAuth client credentials grant", () => {
  it("is requested once for all workers and stored encrypted", async () => {
    const id = await rig.create(
      rig.client({
        scopes: ["a", "b"],
        audience: "aud",
        resource: "https://r.example/",
        tokenParameters: { x: "y" },
      }),
    );
    const authorization = await tokenOf(rig.startWorker()(id));
    expect(authorization).toMatch(/^Bearer ey/);
    expect(await tokenOf(rig.startWorker()(id))).toBe(authorization);
    expect(rig.tokenRequests).toHaveLength(1);
    expect(rig.tokenRequests[0]).toMatchObject({
      grant_type: "client_credentials",
      scope: "a b",
      audience: "aud",
      resource: "https://r.example/",
      x: "y",
    });
    // Both parts are form-encoded before they are joined (RFC 6749, section 2.3.1).
    const shown = Buffer.from(
      rig.tokenRequests[0]?.authorization?.replace("Basic ", "") ?? "",
      "base64",
    ).toString();
    expect(shown.split(":").map(decodeURIComponent)).toEqual([CLIENT.clientId, CLIENT.clientSecret]);
    const stored = JSON.stringify(
      await rig.api.database.db.selectFrom("connectionTokens").selectAll().execute(),
    );
    expect(stored).not.toContain(String(authorization).slice(7));
  });

  it("is requested with the client id and secret in the request body if configured", async () => {
    const endpoint = `${rig.issuer.issuer.url}/token`;
    const config = rig.client({
      clientAuthentication: "client_secret_post",
      tokenEndpoint: endpoint,
      issuer: undefined,
    });
    await tokenOf(rig.startWorker()(await rig.create(config)));
    expect(rig.tokenRequests).toMatchObject([
      { client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret, authorization: "" },
    ]);
  });

  it("is renewed once for all workers, shortly before its expiry or after a server rejects it", async () => {
    rig.modifyResponse = (response, n) =>
      Object.assign(response.body as object, { access_token: `access-${n}`, expires_in: 600 });
    const id = await rig.create(rig.client());
    const [one, two] = [rig.startWorker()(id), rig.startWorker()(id)];
    expect([await tokenOf(one), await tokenOf(two)]).toEqual(["Bearer access-1", "Bearer access-1"]);
    rig.aheadMs = 545_000;
    expect([await tokenOf(one), await tokenOf(two)]).toEqual(["Bearer access-2", "Bearer access-2"]);
    const rejected = await one.authorize(REQUEST, { signal });
    expect(await Promise.all([one.renew(rejected, { signal }), two.renew(rejected, { signal })])).toEqual([
      true,
      true,
    ]);
    expect([await tokenOf(one), await tokenOf(two)]).toEqual(["Bearer access-3", "Bearer access-3"]);
    expect(await two.renew(rejected, { signal })).toBe(true);
    expect(rig.tokenRequests).toHaveLength(3);
  });

  it("is never renewed before a server rejects it if it has no expiry time", async () => {
    rig.modifyResponse = (response) => delete (response.body as Record<string, unknown>).expires_in;
    const credentials = rig.startWorker()(await rig.create(rig.client()));
    await tokenOf(credentials);
    rig.aheadMs = 30 * 86_400_000;
    await tokenOf(credentials);
    expect(rig.tokenRequests).toHaveLength(1);
  });

  it("is never renewed with a refresh token, even if the issuer sends one", async () => {
    rig.modifyResponse = rotate;
    const id = await rig.create(rig.client());
    expect(await tokenOf(rig.startWorker()(id))).toBe("Bearer access-1");
    rig.modifyResponse = (response, n) => {
      rotate(response, n);
      Object.assign(response.body as object, { token_type: "bot" });
    };
    rig.aheadMs = 601_000;
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
    rig.aheadMs = 1_202_000;
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(rig.tokenRequests.map((body) => body.grant_type)).toEqual(Array(3).fill("client_credentials"));
  });

  it("is requested again after the connection's settings change", async () => {
    rig.modifyResponse = (response, n) =>
      Object.assign(response.body as object, { access_token: `access-${n}` });
    const id = await rig.create(rig.client());
    const credentials = rig.startWorker()(id);
    await tokenOf(credentials);
    await rig.api.call("PUT", `/connections/${id}`, { config: { scopes: ["more"] } });
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
    expect(rig.tokenRequests[1]).toMatchObject({ scope: "more" });
    await rig.api.call("PUT", `/connections/${id}`, { name: "other" });
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
  });

  it("is requested again with the new grant if a user replaced the grant during the request", async () => {
    const id = await rig.create(rig.refreshing());
    let replaced: Promise<unknown> | undefined;
    rig.modifyResponse = (response, n) => {
      rotate(response, n);
      replaced ??= rig.api.call("PUT", `/connections/${id}`, { config: { refreshToken: "second" } });
    };
    // Delays the response until after the change.
    const credentials = rig.startWorker(async () => void (await replaced))(id);
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
    expect(rig.tokenRequests.map((body) => body.refresh_token)).toEqual(["first", "second"]);
  });
});

describe("the renewal with an OAuth refresh token", () => {
  it("stores the new refresh token that the issuer sends, and uses it for the next renewal", async () => {
    rig.modifyResponse = rotate;
    const id = await rig.create(rig.refreshing());
    const credentials = rig.startWorker()(id);
    expect(await tokenOf(credentials)).toBe("Bearer access-1");
    rig.aheadMs = 601_000;
    expect(await tokenOf(rig.startWorker()(id))).toBe("Bearer access-2");
    expect(rig.tokenRequests.map((body) => body.refresh_token)).toEqual(["first", "refresh-1"]);
    const connection = await rig.api.database.db
      .selectFrom("connections")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    expect(await readTokens(rig.api.database.db, rig.api.keyring, connection)).toMatchObject({
      generation: 2,
      refreshToken: "refresh-2",
    });
  });

  it("keeps the refresh token if the issuer sends no new one", async () => {
    rig.modifyResponse = (response) =>
      Object.assign(response.body as object, { access_token: "a", refresh_token: undefined, expires_in: 60 });
    const credentials = rig.startWorker()(await rig.create(rig.refreshing()));
    await tokenOf(credentials);
    rig.aheadMs = 61_000;
    await tokenOf(credentials);
    expect(rig.tokenRequests.map((body) => body.refresh_token)).toEqual(["first", "first"]);
  });

  it("uses the last refresh token from the issuer instead of the older refresh token in the settings", async () => {
    rig.modifyResponse = (response, n) => {
      rotate(response, n);
      if (n > 1) Object.assign(response.body as object, { refresh_token: undefined });
    };
    const id = await rig.create(rig.refreshing());
    for (let round = 0; round < 3; round++) {
      await tokenOf(rig.startWorker()(id));
      rig.aheadMs += 601_000;
    }
    expect(rig.tokenRequests.map((body) => body.refresh_token)).toEqual(["first", "refresh-1", "refresh-1"]);
  });

  it("stores the new refresh token before it returns the access token, even after a database failure", async () => {
    rig.modifyResponse = rotate;
    const { db } = rig.api.database;
    const id = await rig.create(rig.refreshing());
    const free = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    let locking: Promise<unknown> | undefined;
    const worker = rig.startWorker(async () => {
      if (locking !== undefined) return;
      locking = db.transaction().execute(async (trx) => {
        await sql`lock table connection_tokens in exclusive mode`.execute(trx);
        locked.resolve();
        await free.promise;
      });
      await locked.promise;
    });
    let isUsable = false;
    const token = tokenOf(worker(id)).then((value) => {
      isUsable = true;
      return value;
    });
    const storing = () =>
      sql<{ pid: number }>`select pid from pg_locks
        where not granted and relation = 'connection_tokens'::regclass`.execute(db);
    await until(async () => (await storing()).rows.length > 0);
    for (const { pid } of (await storing()).rows) await sql`select pg_terminate_backend(${pid})`.execute(db);
    expect(isUsable).toBe(false);
    free.resolve();
    await locking;
    expect(await token).toBe("Bearer access-1");
    expect(rig.tokenRequests).toHaveLength(1);
  });

  it("uses a refresh token only once, even with concurrent calls in several workers", async () => {
    rig.modifyResponse = rotate;
    const id = await rig.create(rig.refreshing());
    const all = Array.from({ length: 6 }, () => rig.startWorker()(id));
    for (let round = 1; round <= 3; round++) {
      const tokens = await Promise.all(all.flatMap((one) => Array.from({ length: 4 }, () => tokenOf(one))));
      expect(new Set(tokens)).toEqual(new Set([`Bearer access-${round}`]));
      expect(rig.tokenRequests).toHaveLength(round);
      rig.aheadMs += 601_000;
    }
    expect(rig.tokenRequests.map((body) => body.refresh_token)).toEqual(["first", "refresh-1", "refresh-2"]);
  });

  it("completes and stores the new refresh token even if the caller aborts", async () => {
    rig.modifyResponse = rotate;
    const id = await rig.create(rig.refreshing());
    const controller = new AbortController();
    rig.issuer.service.once(Events.BeforeResponse, () => controller.abort(new Error("gone")));
    await expect(rig.startWorker()(id).authorize(REQUEST, { signal: controller.signal })).rejects.toThrow(
      "gone",
    );
    // A stopping gateway waits for the exchange.
    await rig.stopWorkers();
    expect(await tokenOf(rig.startWorker()(id))).toBe("Bearer access-1");
    expect(rig.tokenRequests).toHaveLength(1);
  });

  it("stores the new refresh token of a response whose token type is not accepted, until the settings accept it", async () => {
    rig.modifyResponse = (response, n) => {
      rotate(response, n);
      Object.assign(response.body as object, { token_type: "bot" });
    };
    const id = await rig.create(rig.refreshing());
    const unusable = { name: "NeedsReauthError", message: expect.stringContaining("tokenTypes") };
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject(unusable);
    expect(await rig.api.call.get(`/connections/${id}`)).toMatchObject({
      state: "error",
      lastError: { code: "unusable_token", message: expect.stringContaining('"bot"') },
    });
    // All workers together retry once a minute.
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
    rig.aheadMs = 61_000;
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject(unusable);
    await rig.api.call.put(`/connections/${id}`, { config: { tokenTypes: ["Bot"] } });
    expect(await tokenOf(rig.startWorker()(id))).toBe("Bearer access-3");
    expect(await rig.api.call.get(`/connections/${id}`)).toMatchObject({ state: "ok", lastError: null });
    expect(rig.tokenRequests.map((body) => body.refresh_token)).toEqual(["first", "refresh-1", "refresh-2"]);
  });

  it("uses the new refresh token of a response with status 201, nulls and no token type", async () => {
    rig.modifyResponse = (response, n) => {
      rotate(response, n);
      Object.assign(response.body as object, { token_type: undefined, expires_in: null, scope: null });
      Object.assign(response, { statusCode: 201 });
    };
    const id = await rig.create(rig.refreshing());
    const credentials = rig.startWorker()(id);
    const first = await credentials.authorize(REQUEST, { signal });
    expect(first.request.headers.authorization).toBe("Bearer access-1");
    await credentials.renew(first, { signal });
    expect(rig.tokenRequests.map((body) => body.refresh_token)).toEqual(["first", "refresh-1"]);
  });

  it("keeps the new refresh token even if the response contains an invalid ID token", async () => {
    rig.modifyResponse = (response, n) => {
      rotate(response, n);
      Object.assign(response.body as object, { id_token: "broken" });
    };
    expect(await tokenOf(rig.startWorker()(await rig.create(rig.refreshing())))).toBe("Bearer access-1");
  });
});

describe("POST /connections/{connectionId}/test", () => {
  const seen: (string | undefined)[] = [];
  const upstream = opened(() =>
    listenLocally(
      createServer((request, response) => {
        seen.push(request.headers.authorization);
        response.writeHead(request.headers.authorization === "Bearer right" ? 200 : 401).end("hush");
      }),
    ),
  );

  const tryWith = async (token: string, body: object = {}) => {
    const url = upstream.origin;
    const input = { name: "x", kind: "bearer", config: { token }, allowedOrigins: [url] };
    const { id } = (await rig.api.call("POST", "/connections", input)).body;
    return rig.api.call("POST", `/connections/${id}/test`, body);
  };

  it("reports whether the server accepted the credentials, without returning the server's response", async () => {
    expect((await tryWith("right")).body).toEqual({ ok: true, status: 200, code: null, message: null });
    expect((await tryWith("wrong", { url: `${upstream.origin}/me` })).body).toMatchObject({
      ok: false,
      status: 401,
    });
    expect(seen).toEqual(["Bearer right", "Bearer wrong"]);
  });

  it("calls only the allowed origins of the connection", async () => {
    const { status, body } = await tryWith("right", { url: "https://evil.example/" });
    expect(status).toBe(400);
    expect(body.details).toMatchObject([{ path: "url" }]);
  });

  it("requests a token if the connection uses tokens, and reports why the request failed", async () => {
    const id = await rig.create(rig.client());
    expect((await rig.api.call("POST", `/connections/${id}/test`, {})).body).toMatchObject({
      ok: true,
      status: null,
    });
    rig.modifyResponse = (response) =>
      Object.assign(response, { statusCode: 400, body: { error: "invalid_client" } });
    const rejected = await rig.create(rig.client());
    expect((await rig.api.call("POST", `/connections/${rejected}/test`, {})).body).toMatchObject({
      ok: false,
      code: "needsReauth",
      message: expect.stringContaining("invalid_client"),
    });
  });
});
