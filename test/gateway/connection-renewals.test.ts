import { afterEach, describe, expect, it } from "vitest";
import {
  claimRenewal,
  readTokens,
  recordRejection,
  storeTokens,
} from "../../src/data/connections/connection-tokens.ts";
import { OutboundError } from "../../src/net/outbound.ts";
import { opened } from "../support/opened.ts";
import { rotate, startConnectionsRig, tokenOf } from "./connections-support.ts";

const rig = opened(startConnectionsRig);
afterEach(() => rig.reset());

describe("the lease for renewing a connection's OAuth token", () => {
  const turnOf = (connectionId: string, holder: string) => ({ connectionId, generation: 0, holder });
  const createTokens = (n: number) => ({ accessToken: `a${n}`, renewAtMs: undefined, refreshToken: `r${n}` });
  const options = { connectionVersion: 1, nowMs: 0 };
  const REFUSED = { state: "needsReauth", code: "invalid_grant", message: "" } as const;
  const expire = () =>
    rig.api.database.db
      .updateTable("connectionTokens")
      .set({ leaseExpiresAt: new Date(0) })
      .execute();
  const store = (turn: ReturnType<typeof turnOf>, n: number) =>
    rig.api.database.db
      .transaction()
      .execute((trx) => storeTokens(trx, rig.api.keyring, turn, createTokens(n), options));
  const claim = (turn: ReturnType<typeof turnOf>) => claimRenewal(rig.api.database.db, turn, 3_600_000);

  it("is held by one worker until it expires, and can then be acquired by another worker", async () => {
    const id = await rig.create(rig.refreshing());
    const [one, two] = [turnOf(id, "one"), turnOf(id, "two")];
    expect([await claim(one), await claim(two)]).toEqual([true, false]);
    await expire();
    expect(await claim(two)).toBe(true);
  });

  it("lets a slow worker store its new tokens even if another worker has acquired the lease and was rejected by the issuer", async () => {
    const id = await rig.create(rig.refreshing());
    const [slow, next] = [turnOf(id, "slow"), turnOf(id, "next")];
    await claim(slow);
    await expire();
    await claim(next);
    // From the issuer's view, the refresh token was already used.
    await rig.api.database.db.transaction().execute((trx) => recordRejection(trx, next, REFUSED, 0));
    expect(await rig.stateOf(id)).toBe("needsReauth");
    expect(await store(slow, 1)).toBe(true);
    expect(await rig.stateOf(id)).toBe("ok");
    const tokens = await readTokens(rig.api.database.db, rig.api.keyring, { id, version: 1 });
    expect(tokens).toMatchObject({ generation: 1, refreshToken: "r1", rejectedAtMs: undefined });
  });

  it("prevents a slow worker from storing its result once the next worker has stored new tokens", async () => {
    const id = await rig.create(rig.refreshing());
    const [slow, next] = [turnOf(id, "slow"), turnOf(id, "next")];
    await claim(slow);
    await expire();
    await claim(next);
    expect([await store(next, 2), await store(slow, 1)]).toEqual([true, false]);
    await rig.api.database.db.transaction().execute((trx) => recordRejection(trx, slow, REFUSED, 0));
    expect(await rig.stateOf(id)).toBe("ok");
  });

  it("passes from a dead worker to another worker, which renews with the stored refresh token", async () => {
    rig.modifyResponse = rotate;
    const id = await rig.create(rig.refreshing());
    await claim(turnOf(id, "dead"));
    await expire();
    expect(await tokenOf(rig.startWorker()(id))).toBe("Bearer access-1");
  });

  it("makes the API report a lost token if a renewal was interrupted and the issuer then rejects the old refresh token", async () => {
    rig.modifyResponse = (response) =>
      Object.assign(response, { statusCode: 400, body: { error: "invalid_grant" } });
    const id = await rig.create(rig.refreshing());
    await claim(turnOf(id, "dead"));
    await expire();
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
    const shown = await rig.api.call.get(`/connections/${id}`);
    expect(shown).toMatchObject({ state: "needsReauth", lastError: { code: "token_lost" } });
    expect(shown.lastError.message).toMatch(/invalid_grant.*Authorize the connection again/);
    expect(rig.lines.join()).toContain('"event":"connection.token_lost"');
    await rig.api.call.put(`/connections/${id}`, { config: { refreshToken: "second" } });
    expect((await rig.api.call.get(`/connections/${id}`)).lastError).toBe(null);
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect((await rig.api.call.get(`/connections/${id}`)).lastError).toMatchObject({ code: "invalid_grant" });
  });

  it("makes the API report a lost token after a truncated token response, until new tokens are stored", async () => {
    rig.modifyResponse = rotate;
    const id = await rig.create(rig.refreshing());
    let isBroken = true;
    const credentials = rig.startWorker(async () => {
      if (isBroken) throw new OutboundError("reset", "the connection broke");
    })(id);
    const broken = () => expect(tokenOf(credentials)).rejects.toMatchObject({ code: "reset" });
    await broken();
    isBroken = false;
    expect(await tokenOf(credentials)).toMatch(/^Bearer access-/);
    rig.aheadMs = 3_600_000;
    rig.modifyResponse = (response) =>
      Object.assign(response, { statusCode: 400, body: { error: "invalid_grant" } });
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect((await rig.api.call.get(`/connections/${id}`)).lastError).toMatchObject({ code: "invalid_grant" });
    await rig.api.call.put(`/connections/${id}`, { config: { refreshToken: "second" } });
    isBroken = true;
    await broken();
    isBroken = false;
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect((await rig.api.call.get(`/connections/${id}`)).lastError).toMatchObject({ code: "token_lost" });
  });

  it("does not make the API report a lost token after the issuer's metadata or an error response was invalid", async () => {
    const reject = (statusCode: number, body: unknown) => {
      rig.modifyResponse = (response) => Object.assign(response, { statusCode, body });
    };
    reject(403, "<html>");
    const id = await rig.create(rig.refreshing());
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ code: "protocol" });
    await rig.api.call.put(`/connections/${id}`, {
      config: { issuer: `${rig.issuer.issuer.url}/none`, clientSecret: "s", refreshToken: "first" },
    });
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({
      code: "protocol",
      message: expect.stringContaining("no valid metadata (status 404)"),
    });
    const other = rig.issuer.issuer.url?.replace("localhost", "127.0.0.1");
    await rig.api.call.put(`/connections/${id}`, {
      config: { issuer: other, clientSecret: "s", refreshToken: "first" },
    });
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({
      message: expect.stringContaining(`it names the issuer "${rig.issuer.issuer.url}"`),
    });
    await rig.api.call.put(`/connections/${id}`, {
      config: { issuer: rig.issuer.issuer.url, clientSecret: "s", refreshToken: "first" },
    });
    reject(400, { error: "invalid_grant" });
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect((await rig.api.call.get(`/connections/${id}`)).lastError).toMatchObject({ code: "invalid_grant" });
  });

  it("prevents a worker from storing renewed tokens if a user has replaced the grant during the renewal", async () => {
    const id = await rig.create(rig.refreshing());
    const turn = turnOf(id, "one");
    await claim(turn);
    await rig.api.call("PUT", `/connections/${id}`, { config: { refreshToken: "new" } });
    expect(await store(turn, 1)).toBe(false);
  });
});

describe("a rejected or failed OAuth token renewal", () => {
  const rejectWith = (error: string, statusCode = 400) => {
    rig.modifyResponse = (response) => Object.assign(response, { statusCode, body: { error } });
  };

  it("requires a new authorization if the grant is invalid, and is retried only once a minute by all workers together", async () => {
    rejectWith("invalid_grant");
    const id = await rig.create(rig.refreshing());
    const all = [rig.startWorker()(id), rig.startWorker()(id)];
    for (let n = 0; n < 3; n++)
      for (const one of all) await expect(tokenOf(one)).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(rig.tokenRequests).toHaveLength(1);
    expect(await rig.stateOf(id)).toBe("needsReauth");
    rig.aheadMs = 61_000;
    for (const one of all) await expect(tokenOf(one)).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(rig.tokenRequests).toHaveLength(2);
    rig.modifyResponse = rotate;
    rig.aheadMs = 122_000;
    expect(await tokenOf(rig.startWorker()(id))).toBe("Bearer access-3");
    expect(await rig.stateOf(id)).toBe("ok");
    const changes = await rig.api.database.db
      .selectFrom("changes")
      .selectAll()
      .where("key", "=", id)
      .execute();
    // Created, failed and recovered.
    expect(changes).toHaveLength(3);
    expect(rig.lines.join()).not.toMatch(/first|the-secret/);
  });

  it.each([
    ["invalid_client", 401],
    ["unauthorized_client", 400],
    ["invalid_scope", 400],
  ])("with a wrong client or setting (%s) sets the connection to error until a user changes its settings", async (error, status) => {
    rejectWith(error, status);
    const id = await rig.create(rig.refreshing());
    const credentials = rig.startWorker()(id);
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(await rig.stateOf(id)).toBe("error");
    rig.modifyResponse = rotate;
    await rig.api.call("PUT", `/connections/${id}`, { config: { clientSecret: "other" } });
    expect(await rig.stateOf(id)).toBe("ok");
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
  });

  it.each([
    ["server_error", 500],
    ["temporarily_unavailable", 503],
    ["slow_down", 429],
    ["invalid_grant", 502],
  ])("leaves the state of the connection unchanged after a temporary error (%s, %i)", async (error, status) => {
    rejectWith(error, status);
    const id = await rig.create(rig.refreshing());
    const credentials = rig.startWorker()(id);
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "OutboundError" });
    expect(await rig.stateOf(id)).toBe("ok");
  });

  it("is retried with the same refresh token after a temporary error", async () => {
    rejectWith("server_error", 500);
    const credentials = rig.startWorker()(await rig.create(rig.refreshing()));
    await expect(tokenOf(credentials)).rejects.toMatchObject({ name: "OutboundError" });
    rig.modifyResponse = rotate;
    expect(await tokenOf(credentials)).toBe("Bearer access-2");
    expect(rig.tokenRequests.map((body) => body.refresh_token)).toEqual(["first", "first"]);
  });

  it("leaves the state of the connection unchanged if the issuer is unreachable or responds with HTML", async () => {
    rig.modifyResponse = (response) => Object.assign(response, { statusCode: 403, body: "<html>" });
    const id = await rig.create(rig.refreshing());
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ code: "protocol" });
    const away = await rig.create(
      rig.refreshing({ issuer: undefined, tokenEndpoint: "http://127.0.0.1:1/token" }),
    );
    await expect(tokenOf(rig.startWorker()(away))).rejects.toMatchObject({ code: "refused" });
    const inner = await rig.create(
      rig.refreshing({ issuer: undefined, tokenEndpoint: "http://10.0.0.1/token" }),
    );
    await expect(tokenOf(rig.startWorker()(inner))).rejects.toMatchObject({ code: "blocked" });
    for (const one of [id, away, inner]) expect(await rig.stateOf(one)).toBe("ok");
  });

  it("is recognized by the OAuth error in the response body, even with status 200", async () => {
    rejectWith("bad_refresh_token", 200);
    const id = await rig.create(rig.refreshing());
    await expect(tokenOf(rig.startWorker()(id))).rejects.toMatchObject({ name: "NeedsReauthError" });
    expect(await rig.stateOf(id)).toBe("needsReauth");
  });
});
