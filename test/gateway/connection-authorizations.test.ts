import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { setFoundState } from "../../src/data/channels/channel-states.ts";
import { CLIENT, type OAuthProvider, startOAuthProvider } from "../support/oauth-provider.ts";
import { opened } from "../support/opened.ts";
import { ORIGIN, REQUEST, rotate, signal, startConnectionsRig, tokenOf } from "./connections-support.ts";

const rig = opened(startConnectionsRig);
afterEach(() => rig.reset());

describe("the OAuth authorization of a connection", () => {
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
    new URL((await rig.api.call("GET", `/connections/${id}/authorize`)).body.url);
  const callBack = async (url: string | URL) => {
    const { pathname, search } = new URL(url);
    const response = await rig.api.app.request(pathname + search);
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const authorize = async (id: string) => callBack(await provider.browse((await begin(id)).href));

  it("stores the tokens and renews them, and uses each refresh token only once", async () => {
    const id = await rig.create(config());
    expect(await rig.stateOf(id)).toBe("needsReauth");
    const credentials = rig.startWorker()(id);
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
    expect(await rig.stateOf(id)).toBe("ok");
    const first = await tokenOf(credentials);
    for (let n = 1; n <= 3; n++) {
      const before = await credentials.authorize(REQUEST, { signal });
      await Promise.all(
        [rig.startWorker()(id), rig.startWorker()(id), credentials].map((one) =>
          one.renew(before, { signal }),
        ),
      );
    }
    expect(await tokenOf(credentials)).not.toBe(first);
    expect(provider.asked).toEqual(["authorization_code", "refresh_token", "refresh_token", "refresh_token"]);
    const { body } = await rig.api.call("GET", `/audit?entityId=${id}`);
    expect(body.map(({ action }: { action: string }) => action)).toContain("authorize");
  });

  it("replaces a revoked authorization, and restarts channels that had stopped because of the revocation", async () => {
    const id = await rig.create(config());
    await authorize(id);
    const blueprint = await rig.api.call("POST", "/blueprints", {
      title: "x",
      channels: [
        {
          uid: "main",
          kind: "sse",
          config: { url: `${ORIGIN}/events`, connection: "required", run: "always" },
        },
      ],
    });
    const app = (await rig.api.call("POST", "/apps/install", { blueprintId: blueprint.body.id })).body;
    const channel = `/apps/${app.id}/channels/${app.channels[0].id}`;
    expect((await rig.api.call("PUT", channel, { connectionId: id })).body.state).toBe("active");

    await provider.revokeAll();
    const credentials = rig.startWorker()(id);
    const used = await credentials.authorize(REQUEST, { signal });
    await expect(credentials.renew(used, { signal })).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(await rig.stateOf(id)).toBe("needsReauth");
    const row = await rig.api.database.db
      .selectFrom("channels")
      .selectAll()
      .where("connectionId", "=", id)
      .executeTakeFirstOrThrow();
    await setFoundState(rig.api.database.db, row, "needsReauth", Date.now());
    expect((await rig.api.call("GET", channel)).body.state).toBe("needsReauth");

    expect((await authorize(id)).status).toBe(200);
    expect((await rig.api.call("GET", channel)).body.state).toBe("active");
    await tokenOf(credentials);
  });

  it("accepts a callback only once, and only within ten minutes", async () => {
    const id = await rig.create(config());
    const unknown = { status: 400, text: expect.stringContaining("already used or has expired") };
    const used = await provider.browse((await begin(id)).href);
    expect((await callBack(used)).status).toBe(200);
    expect(await callBack(used)).toMatchObject(unknown);

    const beganAtMs = Date.now();
    const late = await provider.browse((await begin(id)).href);
    const { expiresAt } = await rig.api.database.db
      .selectFrom("connectionAuthorizations")
      .select("expiresAt")
      .orderBy("expiresAt", "desc")
      .limit(1)
      .executeTakeFirstOrThrow();
    expect(expiresAt.getTime()).toBeGreaterThanOrEqual(beganAtMs + 600_000);
    expect(expiresAt.getTime()).toBeLessThanOrEqual(Date.now() + 600_000);
    await rig.api.database.db
      .updateTable("connectionAuthorizations")
      .set({ expiresAt: new Date() })
      .execute();
    expect(await callBack(late)).toMatchObject(unknown);

    const changed = await provider.browse((await begin(id)).href);
    await rig.api.call("PUT", `/connections/${id}`, { config: { scopes: ["openid"] } });
    expect(await callBack(changed)).toMatchObject(unknown);

    const key = (await rig.api.call("POST", "/iam/api-keys", { name: "short", permissions: ["*"] })).body;
    const { body } = await rig.api.as(key.key)("GET", `/connections/${id}/authorize`);
    const orphaned = await provider.browse(body.url);
    await rig.api.call("DELETE", `/iam/api-keys/${key.id}`);
    expect(await callBack(orphaned)).toMatchObject(unknown);

    const stored = await rig.api.database.db.selectFrom("connectionAuthorizations").selectAll().execute();
    const fresh = await begin(id);
    expect(JSON.stringify(stored)).not.toContain(fresh.searchParams.get("state"));
  });

  it.each([
    [
      "another issuer's response",
      (url: URL) => url.searchParams.set("iss", "https://evil.example"),
      "does not come from",
    ],
    ["a response without an issuer", (url: URL) => url.searchParams.delete("iss"), "does not come from"],
    ["a response without a code", (url: URL) => url.searchParams.delete("code"), "does not come from"],
    [
      "an invalid code",
      (url: URL) => url.searchParams.set("code", "<b>x"),
      "rejected the authorization code",
    ],
    ["two states", (url: URL) => url.searchParams.append("state", "x"), "does not come from"],
    [
      "an invalid state",
      (url: URL) => url.searchParams.set("state", "<script>"),
      "already used or has expired",
    ],
    [
      "an error response",
      (url: URL) => {
        url.searchParams.delete("code");
        url.searchParams.set("error", "<script>access_denied");
      },
      "was denied",
    ],
  ])("rejects %s at the callback without revealing the details", async (_, change, says) => {
    const id = await rig.create(config());
    const url = new URL(await provider.browse((await begin(id)).href));
    change(url);
    const { status, text, headers } = await callBack(url);
    expect({ status, text }).toEqual({ status: 400, text: expect.stringContaining(says) });
    expect(text).not.toMatch(/[<>]/);
    expect(headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(await rig.stateOf(id)).toBe("needsReauth");
  });

  describe("without a configured issuer name", () => {
    const endpoints = () => ({
      grant: "authorizationCode",
      tokenEndpoint: `${provider.issuer}/token`,
      authorizationEndpoint: `${provider.issuer}/auth`,
      ...CLIENT,
      scopes: ["openid", "offline_access"],
    });
    const write = (method: "POST" | "PUT", path: string, body: object) => rig.api.call(method, path, body);

    it("cannot start, because the API rejects the connection if the issuer requires its name in responses", async () => {
      const body = { name: "x", kind: "oauth2", config: endpoints(), allowedOrigins: [ORIGIN] };
      const rejection = {
        status: 400,
        body: {
          code: "invalid_parameters",
          details: [{ path: "config.issuer", message: expect.stringContaining(provider.issuer) }],
        },
      };
      expect(await write("POST", "/connections", body)).toMatchObject(rejection);
      const id = await rig.create({ ...endpoints(), issuer: provider.issuer });
      expect(await write("PUT", `/connections/${id}`, { config: { issuer: null } })).toMatchObject(rejection);
      expect((await write("PUT", `/connections/${id}`, { name: "y" })).status).toBe(200);
      expect((await authorize(id)).status).toBe(200);
    });

    it("fails at the callback with instructions if the issuer sends its name without announcing this in its metadata", async () => {
      // The server publishes no metadata under this name.
      const other = `${provider.issuer}/auth`.replace("127.0.0.1", "localhost");
      const id = await rig.create({ ...endpoints(), authorizationEndpoint: other });
      const { href } = await begin(id);
      const { status, text } = await callBack(await provider.browse(href.replace("localhost", "127.0.0.1")));
      expect(status).toBe(400);
      expect(text).toMatch(/^oauth_issuer_needed: .*Set `config\.issuer`/);
      expect(await rig.stateOf(id)).toBe("needsReauth");
      await rig.api.call("PUT", `/connections/${id}`, {
        config: { issuer: provider.issuer, authorizationEndpoint: null, clientSecret: CLIENT.clientSecret },
      });
      expect((await authorize(id)).status).toBe(200);
    });
  });

  it("stores the refresh token even if the connection does not accept the type of the access token", async () => {
    const { url } = rig.issuer.issuer;
    const id = await rig.create({
      grant: "authorizationCode",
      tokenEndpoint: `${url}/token`,
      authorizationEndpoint: `${url}/authorize`,
      ...CLIENT,
    });
    rig.modifyResponse = (response, n) => {
      rotate(response, n);
      Object.assign(response.body as object, { token_type: "bot" });
    };
    const { headers } = await fetch(await begin(id), { redirect: "manual" });
    expect(await callBack(headers.get("location") ?? "")).toMatchObject({
      status: 400,
      text: expect.stringContaining("need not authorize again"),
    });
    await rig.api.call.put(`/connections/${id}`, { config: { tokenTypes: ["bot"] } });
    expect(await tokenOf(rig.startWorker()(id))).toBe("Bearer access-2");
    expect(rig.tokenRequests[1]).toMatchObject({ refresh_token: "refresh-1" });
  });

  it("takes the settings of a known provider as defaults, and given settings take precedence", async () => {
    const { url } = rig.issuer.issuer;
    const id = await rig.create({
      provider: "slack",
      authorizationEndpoint: `${url}/authorize`,
      tokenEndpoint: `${url}/token`,
      ...CLIENT,
      authorizationParameters: { team: "T1" },
    });
    rig.modifyResponse = (response, n) => {
      rotate(response, n);
      Object.assign(response.body as object, { token_type: "bot" });
    };
    const address = await begin(id);
    expect(Object.fromEntries(address.searchParams)).toMatchObject({
      scope: "channels:history groups:history im:history mpim:history",
      code_challenge_method: "S256",
      team: "T1",
    });
    const { headers } = await fetch(address, { redirect: "manual" });
    expect(await callBack(headers.get("location") ?? "")).toMatchObject({ status: 200 });
    expect(rig.tokenRequests).toMatchObject([{ client_secret: CLIENT.clientSecret, authorization: "" }]);
    expect(await rig.stateOf(id)).toBe("ok");
    const credentials = rig.startWorker()(id);
    const first = await credentials.authorize(REQUEST, { signal });
    await credentials.renew(first, { signal });
    expect(rig.tokenRequests[1]).toMatchObject({
      refresh_token: "refresh-1",
      client_secret: CLIENT.clientSecret,
    });
  });

  it("uses the endpoints of a given issuer instead of those of the provider", async () => {
    const id = await rig.create({
      provider: "gitlab",
      issuer: provider.issuer,
      clientAuthentication: "client_secret_basic",
      ...CLIENT,
      scopes: ["openid", "offline_access"],
    });
    expect((await begin(id)).origin).toBe(provider.issuer);
    expect((await authorize(id)).status).toBe(200);
  });

  it("cannot be started for a connection with another grant type or by a read-only caller", async () => {
    const id = await rig.create(rig.client());
    expect((await rig.api.call("GET", `/connections/${id}/authorize`)).status).toBe(409);
    const reader = rig.api.as(await rig.api.keyWith("connections.read"));
    expect((await reader("GET", `/connections/${await rig.create(config())}/authorize`)).status).toBe(403);
  });

  it("ends when the connection is allowed to call additional origins", async () => {
    const id = await rig.create(config());
    await authorize(id);
    const wider = {
      allowedOrigins: [ORIGIN, "https://more.example"],
      config: { clientSecret: CLIENT.clientSecret },
    };
    expect((await rig.api.call("PUT", `/connections/${id}`, wider)).body.state).toBe("needsReauth");
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
  });
});
