import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { Events, type MutableResponse, OAuth2Server } from "oauth2-mock-server";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { stopSource } from "../../src/data/channel-states.ts";
import { claimRenewal, noteRefusal, readTokens, storeTokens } from "../../src/data/connection-tokens.ts";
import { createConnections } from "../../src/gateway/connections.ts";
import { createLog } from "../../src/log.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import type { Credentials } from "../../src/net/credentials.ts";
import type { Outbound } from "../../src/net/outbound.ts";
import { createTestApi, type TestApi } from "../support/api.ts";
import { CLIENT, type OAuthProvider, startOAuthProvider } from "../support/oauth-provider.ts";
import { until } from "../support/until.ts";

const ORIGIN = "https://api.example.com";
const REQUEST = { method: "GET", url: `${ORIGIN}/x`, headers: { accept: "*/*" } };
const { signal } = new AbortController();

let api: TestApi;
let mock: OAuth2Server;
/** Requests to the mock's token endpoint; each may be answered otherwise by `instead`. */
let asked: Record<string, string>[] = [];
let instead: ((response: MutableResponse, n: number) => void) | undefined;
beforeAll(async () => {
  api = await createTestApi({ allowNetworks: ["127.0.0.0/8", "::1/128"] });
  mock = new OAuth2Server();
  await mock.issuer.keys.generate("ES256");
  await mock.start(0, "127.0.0.1");
  mock.service.on(Events.BeforeResponse, (response, request) => {
    asked.push({
      ...(request.body as Record<string, string>),
      authorization: request.headers.authorization ?? "",
    });
    instead?.(response, asked.length);
  });
});
afterAll(async () => {
  await mock.stop();
  await api[Symbol.asyncDispose]();
});

let workers: AsyncDisposableStack;
let lines: string[];
/** How far the workers' clocks are ahead. */
let aheadMs = 0;
beforeEach(() => {
  workers = new AsyncDisposableStack();
  asked = [];
  lines = [];
  instead = undefined;
  aheadMs = 0;
});
afterEach(() => workers.disposeAsync());

/** As each gateway has it: nothing is shared but the database. */
function startWorker(afterCall = async () => {}): (id: string) => Credentials {
  const real = workers.use(createOutbound({ allowNetworks: ["127.0.0.0/8", "::1/128"] }));
  const outbound: Outbound = {
    ...real,
    fetch: (limits) => async (input, init) => {
      const response = await real.fetch(limits)(input, init);
      await afterCall();
      return response;
    },
  };
  const log = createLog({ level: "debug", destination: { write: (line) => void lines.push(line) } });
  const { db } = api.database;
  const clock = () => Date.now() + aheadMs;
  return workers.use(createConnections({ db, keyring: api.keyring, outbound, clock, log })).credentialsOf;
}

async function create(config: object, kind = "oauth2"): Promise<string> {
  const body = { name: "x", kind, config, allowedOrigins: [ORIGIN] };
  const created = await api.call("POST", "/connections", body);
  if (created.status !== 200) throw new Error(JSON.stringify(created.body));
  return created.body.id;
}
const mocked = (more: object = {}) => ({
  grant: "clientCredentials",
  issuer: mock.issuer.url,
  ...CLIENT,
  ...more,
});
const refreshing = (more: object = {}) => mocked({ grant: "refreshToken", refreshToken: "first", ...more });
const rotate = (response: MutableResponse, n: number) => {
  Object.assign(response.body as object, {
    access_token: `access-${n}`,
    refresh_token: `refresh-${n}`,
    expires_in: 600,
  });
};
const tokenOf = async (credentials: Credentials) =>
  (await credentials.authorize(REQUEST, { signal })).request.headers.authorization;
const stateOf = async (id: string) => (await api.call("GET", `/connections/${id}`)).body.state;

describe("credentials", () => {
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
  ])("of kind %s stand in the request, and are told to be secret", async (kind, config, headers, query) => {
    const authorized = await startWorker()(await create(config, kind)).authorize(REQUEST, { signal });
    expect(authorized).toEqual({
      request: { ...REQUEST, url: REQUEST.url + query, headers: { ...REQUEST.headers, ...headers } },
      secretHeaders: Object.keys(headers),
      secretQuery: query === "" ? [] : [query.slice(1, query.indexOf("="))],
      generation: undefined,
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
  ])("never go to %s", async (url) => {
    const credentials = startWorker()(await create({ token: "t" }, "bearer"));
    await expect(credentials.authorize({ ...REQUEST, url }, { signal })).rejects.toMatchObject({
      name: "OriginNotAllowedError",
    });
  });

  it("are used where it is noted, once a minute", async () => {
    const id = await create({ token: "t" }, "bearer");
    const usedAt = async () => (await api.call("GET", `/connections/${id}`)).body.lastUsedAt;
    await startWorker()(id).authorize(REQUEST, { signal });
    await until(async () => (await usedAt()) !== null);
    const first = await usedAt();
    await startWorker()(id).authorize(REQUEST, { signal });
    await workers.disposeAsync();
    expect(await usedAt()).toBe(first);
  });
});

describe("tokens of a client", () => {
  it("are asked for as the settings say, once, and shared by all workers", async () => {
    const id = await create(
      mocked({
        scopes: ["a", "b"],
        audience: "aud",
        resource: "https://r.example/",
        tokenParameters: { x: "y" },
      }),
    );
    const authorization = await tokenOf(startWorker()(id));
    expect(authorization).toMatch(/^Bearer ey/);
    expect(await tokenOf(startWorker()(id))).toBe(authorization);
    expect(asked).toHaveLength(1);
    expect(asked[0]).toMatchObject({
      grant_type: "client_credentials",
      scope: "a b",
      audience: "aud",
      resource: "https://r.example/",
      x: "y",
    });
    // Each part as a form has it, before they are put together (RFC 6749, section 2.3.1).
    const shown = Buffer.from(asked[0]?.authorization?.replace("Basic ", "") ?? "", "base64").toString();
    expect(shown.split(":").map(decodeURIComponent)).toEqual([CLIENT.clientId, CLIENT.clientSecret]);
    const stored = JSON.stringify(await api.database.db.selectFrom("connectionTokens").selectAll().execute());
    expect(stored).not.toContain(String(authorization).slice(7));
  });

  it("name the client in the body where that is asked for", async () => {
    const endpoint = `${mock.issuer.url}/token`;
    const config = mocked({
      clientAuthentication: "client_secret_post",
      tokenEndpoint: endpoint,
      issuer: undefined,
    });
    await tokenOf(startWorker()(await create(config)));
    expect(asked).toMatchObject([
      { client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret, authorization: "" },
    ]);
  });

  it("are renewed before they expire, and after a refusal, by one for all", async () => {
    instead = (response, n) =>
      Object.assign(response.body as object, { access_token: `access-${n}`, expires_in: 600 });
    const id = await create(mocked());
    const [one, two] = [startWorker()(id), startWorker()(id)];
    expect([await tokenOf(one), await tokenOf(two)]).toEqual(["Bearer access-1", "Bearer access-1"]);
    aheadMs = 545_000;
    expect([await tokenOf(one), await tokenOf(two)]).toEqual(["Bearer access-2", "Bearer access-2"]);
    const refused = await one.authorize(REQUEST, { signal });
    expect(await Promise.all([one.renew(refused, { signal }), two.renew(refused, { signal })])).toEqual([
      true,
      true,
    ]);
    expect([await tokenOf(one), await tokenOf(two)]).toEqual(["Bearer access-3", "Bearer access-3"]);
    expect(await two.renew(refused, { signal })).toBe(true);
    expect(asked).toHaveLength(3);
  });

  it("that do not say when they expire last until they are refused", async () => {
    instead = (response) => delete (response.body as Record<string, unknown>).expires_in;
    const credentials = startWorker()(await create(mocked()));
    await tokenOf(credentials);
    aheadMs = 30 * 86_400_000;
    await tokenOf(credentials);
    expect(asked).toHaveLength(1);
  });

  it("are asked for anew when the settings change, in flight or not", async () => {
    instead = (response, n) => Object.assign(response.body as object, { access_token: `access-${n}` });
    const id = await create(mocked());
    const credentials = startWorker()(id);
    await tokenOf(credentials);
    await api.call("PUT", `/connections/${id}`, { config: { scopes: ["more"] } });
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
    expect(asked[1]).toMatchObject({ scope: "more" });
    await api.call("PUT", `/connections/${id}`, { name: "other" });
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
  });

  it("that come back for a grant which was replaced meanwhile are asked for anew", async () => {
    const id = await create(refreshing());
    let replaced: Promise<unknown> | undefined;
    instead = (response, n) => {
      rotate(response, n);
      replaced ??= api.call("PUT", `/connections/${id}`, { config: { refreshToken: "second" } });
    };
    // Slower than the change: the answer waits for it.
    const credentials = startWorker(async () => void (await replaced))(id);
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
    expect(asked.map((body) => body.refresh_token)).toEqual(["first", "second"]);
  });
});

describe("a refresh token", () => {
  it("that changes with each use is stored before its access token is used", async () => {
    instead = rotate;
    const id = await create(refreshing());
    const credentials = startWorker()(id);
    expect(await tokenOf(credentials)).toBe("Bearer access-1");
    aheadMs = 601_000;
    expect(await tokenOf(startWorker()(id))).toBe("Bearer access-2");
    expect(asked.map((body) => body.refresh_token)).toEqual(["first", "refresh-1"]);
    const connection = await api.database.db
      .selectFrom("connections")
      .selectAll()
      .where("id", "=", id)
      .executeTakeFirstOrThrow();
    expect(await readTokens(api.database.db, api.keyring, connection)).toMatchObject({
      generation: 2,
      refreshToken: "refresh-2",
    });
  });

  it("that does not change is kept", async () => {
    instead = (response) =>
      Object.assign(response.body as object, { access_token: "a", refresh_token: undefined, expires_in: 60 });
    const credentials = startWorker()(await create(refreshing()));
    await tokenOf(credentials);
    aheadMs = 61_000;
    await tokenOf(credentials);
    expect(asked.map((body) => body.refresh_token)).toEqual(["first", "first"]);
  });

  it("is used once however many workers and calls want the token", async () => {
    instead = rotate;
    const id = await create(refreshing());
    const all = Array.from({ length: 6 }, () => startWorker()(id));
    for (let round = 1; round <= 3; round++) {
      const tokens = await Promise.all(all.flatMap((one) => Array.from({ length: 4 }, () => tokenOf(one))));
      expect(new Set(tokens)).toEqual(new Set([`Bearer access-${round}`]));
      expect(asked).toHaveLength(round);
      aheadMs += 601_000;
    }
    expect(asked.map((body) => body.refresh_token)).toEqual(["first", "refresh-1", "refresh-2"]);
  });

  it("is exchanged to the end and kept though whoever asked has gone", async () => {
    instead = rotate;
    const id = await create(refreshing());
    const controller = new AbortController();
    mock.service.once(Events.BeforeResponse, () => controller.abort(new Error("gone")));
    await expect(startWorker()(id).authorize(REQUEST, { signal: controller.signal })).rejects.toThrow("gone");
    // A gateway that stops waits for it.
    await workers.disposeAsync();
    workers = new AsyncDisposableStack();
    expect(await tokenOf(startWorker()(id))).toBe("Bearer access-1");
    expect(asked).toHaveLength(1);
  });

  it("of an answer with a broken ID token is not lost", async () => {
    instead = (response, n) => {
      rotate(response, n);
      Object.assign(response.body as object, { id_token: "broken" });
    };
    expect(await tokenOf(startWorker()(await create(refreshing())))).toBe("Bearer access-1");
  });
});

describe("a turn to renew", () => {
  const turnOf = (connectionId: string, holder: string) => ({ connectionId, generation: 0, holder });
  const given = (n: number) => ({ accessToken: `a${n}`, renewAtMs: undefined, refreshToken: `r${n}` });
  const options = { connectionVersion: 1, nowMs: 0 };
  const expire = () =>
    api.database.db
      .updateTable("connectionTokens")
      .set({ leaseExpiresAt: new Date(0) })
      .execute();
  const store = (turn: ReturnType<typeof turnOf>, n: number) =>
    api.database.db.transaction().execute((trx) => storeTokens(trx, api.keyring, turn, given(n), options));
  const claim = (turn: ReturnType<typeof turnOf>) => claimRenewal(api.database.db, turn, 60_000);

  it("is one's, and passes on when its time is over", async () => {
    const id = await create(refreshing());
    const [one, two] = [turnOf(id, "one"), turnOf(id, "two")];
    expect([await claim(one), await claim(two)]).toEqual([true, false]);
    await expire();
    expect(await claim(two)).toBe(true);
  });

  it("that passed on while its holder was slow keeps what the holder alone was given", async () => {
    const id = await create(refreshing());
    const [slow, next] = [turnOf(id, "slow"), turnOf(id, "next")];
    await claim(slow);
    await expire();
    await claim(next);
    // To the issuer the refresh token was used already.
    await api.database.db.transaction().execute((trx) => noteRefusal(trx, next, "needsReauth", 0));
    expect(await stateOf(id)).toBe("needsReauth");
    expect(await store(slow, 1)).toBe(true);
    expect(await stateOf(id)).toBe("ok");
    const tokens = await readTokens(api.database.db, api.keyring, { id, version: 1 });
    expect(tokens).toMatchObject({ generation: 1, refreshToken: "r1", refusedAtMs: undefined });
  });

  it("whose successor was given something brings nothing any more, and says nothing", async () => {
    const id = await create(refreshing());
    const [slow, next] = [turnOf(id, "slow"), turnOf(id, "next")];
    await claim(slow);
    await expire();
    await claim(next);
    expect([await store(next, 2), await store(slow, 1)]).toEqual([true, false]);
    await api.database.db.transaction().execute((trx) => noteRefusal(trx, slow, "needsReauth", 0));
    expect(await stateOf(id)).toBe("ok");
  });

  it("of a holder that died is taken by the next, which tries what is stored", async () => {
    instead = rotate;
    const id = await create(refreshing());
    await claim(turnOf(id, "dead"));
    await expire();
    expect(await tokenOf(startWorker()(id))).toBe("Bearer access-1");
  });

  it("brings nothing for a grant that was replaced meanwhile", async () => {
    const id = await create(refreshing());
    const turn = turnOf(id, "one");
    await claim(turn);
    await api.call("PUT", `/connections/${id}`, { config: { refreshToken: "new" } });
    expect(await store(turn, 1)).toBe(false);
  });
});

describe("an issuer that refuses", () => {
  const refuse = (error: string, statusCode = 400) => {
    instead = (response) => Object.assign(response, { statusCode, body: { error } });
  };

  it("a grant for good needs a person, and is asked once a minute by all workers together", async () => {
    refuse("invalid_grant");
    const id = await create(refreshing());
    const all = [startWorker()(id), startWorker()(id)];
    for (let n = 0; n < 3; n++)
      for (const one of all) await expect(tokenOf(one)).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(asked).toHaveLength(1);
    expect(await stateOf(id)).toBe("needsReauth");
    aheadMs = 61_000;
    for (const one of all) await expect(tokenOf(one)).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(asked).toHaveLength(2);
    instead = rotate;
    aheadMs = 122_000;
    expect(await tokenOf(startWorker()(id))).toBe("Bearer access-3");
    expect(await stateOf(id)).toBe("ok");
    const changes = await api.database.db.selectFrom("changes").selectAll().where("key", "=", id).execute();
    expect(changes).toHaveLength(2);
    expect(lines.join()).not.toMatch(/first|the-secret/);
  });

  it.each([
    ["invalid_client", 401],
    ["unauthorized_client", 400],
    ["invalid_scope", 400],
  ])("the client or its settings (%s) is an error that a person mends", async (error, status) => {
    refuse(error, status);
    const id = await create(refreshing());
    const credentials = startWorker()(id);
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(await stateOf(id)).toBe("error");
    instead = rotate;
    await api.call("PUT", `/connections/${id}`, { config: { clientSecret: "other" } });
    expect(await stateOf(id)).toBe("ok");
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
  });

  it.each([
    ["server_error", 500],
    ["temporarily_unavailable", 503],
    ["slow_down", 429],
    ["invalid_grant", 502],
  ])("for a while (%s, %i) has refused no grant", async (error, status) => {
    refuse(error, status);
    const id = await create(refreshing());
    const credentials = startWorker()(id);
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "OutboundError" });
    expect(await stateOf(id)).toBe("ok");
  });

  it("for a while is asked again with the same refresh token, a moment later", async () => {
    refuse("server_error", 500);
    const credentials = startWorker()(await create(refreshing()));
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "OutboundError" });
    instead = rotate;
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
    expect(asked.map((body) => body.refresh_token)).toEqual(["first", "first"]);
  });

  it("by what is no OAuth at all, or cannot be reached, has refused no grant", async () => {
    instead = (response) => Object.assign(response, { statusCode: 403, body: "<html>" });
    const id = await create(refreshing());
    await expect(tokenOf(startWorker()(id))).rejects.toMatchObject({ code: "protocol" });
    const away = await create(refreshing({ issuer: undefined, tokenEndpoint: "http://127.0.0.1:1/token" }));
    await expect(tokenOf(startWorker()(away))).rejects.toMatchObject({ code: "refused" });
    const inner = await create(refreshing({ issuer: undefined, tokenEndpoint: "http://10.0.0.1/token" }));
    await expect(tokenOf(startWorker()(inner))).rejects.toMatchObject({ code: "blocked" });
    for (const one of [id, away, inner]) expect(await stateOf(one)).toBe("ok");
  });

  it("in an answer that is called a success is understood", async () => {
    refuse("bad_refresh_token", 200);
    const id = await create(refreshing());
    await expect(tokenOf(startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(await stateOf(id)).toBe("needsReauth");
  });
});

describe("an authorization by a person", () => {
  let provider: OAuthProvider;
  beforeAll(async () => {
    provider = await startOAuthProvider({
      redirectUri: "https://inlet.example/v1/connections/oauth/callback",
    });
  });
  afterAll(() => provider[Symbol.asyncDispose]());

  const config = () => ({
    grant: "authorizationCode",
    issuer: provider.issuer,
    ...CLIENT,
    scopes: ["openid", "offline_access"],
  });
  const begin = async (id: string): Promise<URL> =>
    new URL((await api.call("GET", `/connections/${id}/authorize`)).body.url);
  const callBack = async (url: string | URL) => {
    const { pathname, search } = new URL(url);
    const response = await api.app.request(pathname + search);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const authorize = async (id: string) => callBack(await provider.browse((await begin(id)).href));

  it("brings tokens that are renewed, each refresh token once", async () => {
    const id = await create(config());
    expect(await stateOf(id)).toBe("needsReauth");
    const credentials = startWorker()(id);
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "NeedsReauthError" });
    const url = await begin(id);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: "code",
      client_id: CLIENT.clientId,
      redirect_uri: "https://inlet.example/v1/connections/oauth/callback",
      code_challenge_method: "S256",
      scope: "openid offline_access",
    });
    const done = await callBack(await provider.browse(url.href));
    expect(done).toMatchObject({ status: 200, text: expect.stringContaining("authorized") });
    expect(done.headers.get("content-type")).toContain("text/plain");
    expect(await stateOf(id)).toBe("ok");
    const first = await tokenOf(credentials);
    for (let n = 1; n <= 3; n++) {
      const before = await credentials.authorize(REQUEST, { signal });
      await Promise.all(
        [startWorker()(id), startWorker()(id), credentials].map((one) => one.renew(before, { signal })),
      );
    }
    expect(await tokenOf(credentials)).not.toBe(first);
    expect(provider.asked).toEqual(["authorization_code", "refresh_token", "refresh_token", "refresh_token"]);
    const { body } = await api.call("GET", `/audit?entityId=${id}`);
    expect(body.map(({ action }: { action: string }) => action)).toContain("authorize");
  });

  it("that is revoked needs a new one, which lets the channels go on that it had stopped", async () => {
    const id = await create(config());
    await authorize(id);
    const blueprint = await api.call("POST", "/blueprints", {
      title: "x",
      channels: [{ uid: "main", kind: "sse", config: { url: `${ORIGIN}/events`, connection: "required" } }],
    });
    const app = (await api.call("POST", "/apps/install", { blueprintId: blueprint.body.id })).body;
    const channel = `/apps/${app.id}/channels/${app.channels[0].id}`;
    expect((await api.call("PUT", channel, { connectionId: id })).body.state).toBe("active");

    await provider.revokeAll();
    const credentials = startWorker()(id);
    const used = await credentials.authorize(REQUEST, { signal });
    await expect(credentials.renew(used, { signal })).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(await stateOf(id)).toBe("needsReauth");
    const row = await api.database.db
      .selectFrom("channels")
      .selectAll()
      .where("connectionId", "=", id)
      .executeTakeFirstOrThrow();
    await stopSource(api.database.db, row, "needsReauth", Date.now());
    expect((await api.call("GET", channel)).body.state).toBe("needsReauth");

    expect((await authorize(id)).status).toBe(200);
    expect((await api.call("GET", channel)).body.state).toBe("active");
    await tokenOf(credentials);
  });

  it("is taken once, in ten minutes, for the connection as it was, from whoever may still ask", async () => {
    const id = await create(config());
    const unknown = { status: 400, text: expect.stringContaining("not known") };
    const used = await provider.browse((await begin(id)).href);
    expect((await callBack(used)).status).toBe(200);
    expect(await callBack(used)).toMatchObject(unknown);

    const late = await provider.browse((await begin(id)).href);
    await api.database.db.updateTable("connectionAuthorizations").set({ expiresAt: new Date() }).execute();
    expect(await callBack(late)).toMatchObject(unknown);

    const changed = await provider.browse((await begin(id)).href);
    await api.call("PUT", `/connections/${id}`, { config: { scopes: ["openid"] } });
    expect(await callBack(changed)).toMatchObject(unknown);

    const key = (await api.call("POST", "/iam/api-keys", { name: "short", permissions: ["*"] })).body;
    const { body } = await api.as(key.key)("GET", `/connections/${id}/authorize`);
    const orphaned = await provider.browse(body.url);
    await api.call("DELETE", `/iam/api-keys/${key.id}`);
    expect(await callBack(orphaned)).toMatchObject(unknown);

    const stored = await api.database.db.selectFrom("connectionAuthorizations").selectAll().execute();
    const fresh = await begin(id);
    expect(JSON.stringify(stored)).not.toContain(fresh.searchParams.get("state"));
  });

  it.each([
    [
      "another issuer's answer",
      (url: URL) => url.searchParams.set("iss", "https://evil.example"),
      "not the answer",
    ],
    [
      "an answer that does not say whose it is",
      (url: URL) => url.searchParams.delete("iss"),
      "not the answer",
    ],
    ["one without a code", (url: URL) => url.searchParams.delete("code"), "not the answer"],
    ["a code that is none", (url: URL) => url.searchParams.set("code", "<b>x"), "does not accept"],
    ["two states", (url: URL) => url.searchParams.append("state", "x"), "not the answer"],
    ["a state that is none", (url: URL) => url.searchParams.set("state", "<script>"), "not known"],
    [
      "a refusal",
      (url: URL) => {
        url.searchParams.delete("code");
        url.searchParams.set("error", "<script>access_denied");
      },
      "not given",
    ],
  ])("does not take %s, and shows nothing of it", async (_, change, says) => {
    const id = await create(config());
    const url = new URL(await provider.browse((await begin(id)).href));
    change(url);
    const { status, text, headers } = await callBack(url);
    expect({ status, text }).toEqual({ status: 400, text: expect.stringContaining(says) });
    expect(text).not.toMatch(/[<>]/);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(await stateOf(id)).toBe("needsReauth");
  });

  it("is none's that has another grant, nor of whoever may only read", async () => {
    const id = await create(mocked());
    expect((await api.call("GET", `/connections/${id}/authorize`)).status).toBe(409);
    const reader = api.as(await api.keyWith("connections.read"));
    expect((await reader("GET", `/connections/${await create(config())}/authorize`)).status).toBe(403);
  });

  it("ends where more origins are allowed: it was not given for those", async () => {
    const id = await create(config());
    await authorize(id);
    const wider = {
      allowedOrigins: [ORIGIN, "https://more.example"],
      config: { clientSecret: CLIENT.clientSecret },
    };
    expect((await api.call("PUT", `/connections/${id}`, wider)).body.state).toBe("needsReauth");
    await expect(tokenOf(startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
  });
});

describe("a connection that is tried", () => {
  let upstream: Server;
  let url: string;
  const seen: (string | undefined)[] = [];
  beforeAll(async () => {
    upstream = createServer((request, response) => {
      seen.push(request.headers.authorization);
      response.writeHead(request.headers.authorization === "Bearer right" ? 200 : 401).end("hush");
    });
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}`;
  });
  afterAll(() => upstream.close());

  const tryWith = async (token: string, body: object = {}) => {
    const input = { name: "x", kind: "bearer", config: { token }, allowedOrigins: [url] };
    const { id } = (await api.call("POST", "/connections", input)).body;
    return api.call("POST", `/connections/${id}/test`, body);
  };

  it("says whether it was accepted, and nothing of what was answered", async () => {
    expect((await tryWith("right")).body).toEqual({ ok: true, status: 200, code: null, message: null });
    expect((await tryWith("wrong", { url: `${url}/me` })).body).toMatchObject({ ok: false, status: 401 });
    expect(seen).toEqual(["Bearer right", "Bearer wrong"]);
  });

  it("goes nowhere else", async () => {
    const { status, body } = await tryWith("right", { url: "https://evil.example/" });
    expect(status).toBe(400);
    expect(body.details).toMatchObject([{ path: "url" }]);
  });

  it("only has a token where tokens are issued, or says why it has none", async () => {
    const id = await create(mocked());
    expect((await api.call("POST", `/connections/${id}/test`, {})).body).toMatchObject({
      ok: true,
      status: null,
    });
    instead = (response) => Object.assign(response, { statusCode: 400, body: { error: "invalid_client" } });
    const refused = await create(mocked());
    expect((await api.call("POST", `/connections/${refused}/test`, {})).body).toMatchObject({
      ok: false,
      code: "needsReauth",
      message: expect.stringContaining("invalid_client"),
    });
  });
});
