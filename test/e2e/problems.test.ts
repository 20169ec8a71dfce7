import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { type Caller, callerOf } from "../support/api.ts";
import { describeDeep } from "../support/deep-run.ts";
import { readMetrics } from "../support/gateway-process.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { startHandlerServer } from "../support/handler-server.ts";
import { listenLocally } from "../support/local-server.ts";
import { opened } from "../support/opened.ts";
import { until as untilSoon } from "../support/until.ts";

const OFTEN = { everyMs: 150, slowEveryMs: 150, openAfterMs: 0, resolveAfterMs: 0 };
/** Does not check more often than the problem watch, because each check calls the API. */
const until = (isMet: () => boolean | Promise<boolean>) => untilSoon(isMet, { everyMs: 75 });

const gateway = givenGateway(
  { INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
  {
    problemTiming: OFTEN,
    housekeeperTiming: { tickMs: 100, sweepEveryMs: 200, watchEveryMs: 200 },
    handlersTiming: { firstRetryMs: 50, mostRetryMs: 100, breakerMs: 50 },
  },
);
const handler = opened(startHandlerServer);

interface ReceivedProblem {
  readonly type: string;
  readonly id: string;
  readonly problem: { readonly id: string; readonly kind: string; readonly state: string };
}

/** Creates an organization and subscribes a handler at this path to its system app. */
async function organization(path: string) {
  const { id, apiKey } = await gateway.api<{ id: string; apiKey: { key: string } }>(
    "POST",
    "/organizations",
    {
      name: path,
    },
  );
  const call: Caller = callerOf(async (method, path, body) => {
    const response = await fetch(`${gateway.origin}/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey.key}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  });
  // The problem watch creates the system app at its next check.
  const systemOf = async () => (await call.get("/apps")).find((app: { isSystem: boolean }) => app.isSystem);
  await until(async () => (await systemOf()) !== undefined);
  const system = await systemOf();
  const subscription = await call.post(`/apps/${system.id}/events/subscribe`, {
    eventUid: "problems:*",
    handler: { url: handler.urlOf(path) },
  });
  const receivedProblems = (): readonly ReceivedProblem[] =>
    handler.taken(path).map(({ headers, body }) => ({
      type: headers["ce-type"] ?? "",
      id: headers["ce-id"] ?? "",
      problem: JSON.parse(body),
    }));
  const open = (kind: string) => call.get(`/problems?state=opened&kind=${kind}`);
  return {
    id,
    call,
    system,
    subscription,
    receivedProblems,
    open,
    /** Waits until a problem of this kind is open and delivered to the handler. Returns the problem. */
    async opened(kind: string) {
      await until(async () => (await open(kind)).length > 0);
      const [problem] = await open(kind);
      await until(() => receivedProblems().some((one) => one.problem.id === problem.id));
      return problem;
    },
    /** Waits until the problem is resolved and the handler has received its resolution. */
    async over({ id }: { readonly id: string }) {
      await until(async () => (await call.get(`/problems/${id}`)).state === "resolved");
      await until(() =>
        receivedProblems().some((one) => one.problem.id === id && one.type.endsWith(".resolved")),
      );
    },
    async install(...channels: object[]) {
      const { id: blueprintId } = await call.post("/blueprints", { title: "test", channels });
      return call.post("/apps/install", { blueprintId });
    },
  };
}

const send = (channelId: string, body: unknown) =>
  fetch(`${gateway.origin}/hooks/${channelId}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

const AN_HOUR_AGO = new Date(Date.now() - 3_600_000);
const TRIVIAL = { kind: "webhook", events: [{ type: "e" }] };
const STRICT = { type: "e", payloadPath: "$.missing" };

describe("problems of each kind", () => {
  it("are resolved once a stream that failed works again, before its run has ended", async () => {
    const one = await organization("/stream");
    let isUp = false;
    const upstream = createServer((_, response) => {
      if (!isUp) return void response.writeHead(503).end();
      response.writeHead(200, { "content-type": "text/event-stream" }).write('id: 1\ndata: {"n":1}\n\n');
    });
    await using server = await listenLocally(upstream);
    const app = await one.install({
      uid: "ticks",
      kind: "sse",
      config: { url: `${server.origin}/`, run: "always", reconnect: { initialMs: 10, maxMs: 50 } },
      events: [{ type: "tick" }],
    });
    const failing = await one.opened("channel_failing");
    expect(failing).toMatchObject({
      channel: { uid: "ticks" },
      figures: { failuresInARow: expect.any(Number) },
    });
    isUp = true;
    await one.over(failing);
    // Otherwise the stream fails again when the server ends.
    await one.call.delete(`/apps/${app.id}`);
  });

  it("are listed by the API, sent to a handler, and resolved once their cause is fixed", async () => {
    const one = await organization("/kinds");
    const { call, install } = one;
    const { db, client } = gateway.stores;
    const app = await install(
      {
        uid: "closed",
        kind: "webhook",
        events: [{ type: "e" }],
        config: {
          verification: { scheme: "hmac", algorithm: "sha256", encoding: "hex", in: "header", name: "x-s" },
        },
      },
      { ...TRIVIAL, uid: "quiet", config: { expectEverySeconds: 60 } },
      { ...TRIVIAL, uid: "strict", config: { itemsPath: "$.items[*]" }, events: [STRICT] },
      { ...TRIVIAL, uid: "full", config: { retention: { maxEntries: 100 } } },
    );
    const uidOf = (uid: string) => app.channels.find((channel: { uid: string }) => channel.uid === uid);
    const path = `/apps/${app.id}`;

    // The channel rejects every delivery, because it has no secret.
    const failing = await one.opened("channel_failing");
    expect(failing).toMatchObject({
      organizationId: one.id,
      severity: "error",
      app: { id: app.id },
      channel: { uid: "closed" },
      subscription: null,
      connection: null,
      acknowledgedAt: null,
      resolvedAt: null,
    });
    const metric = (count: number) =>
      until(async () =>
        (await readMetrics(gateway.origin)).includes(
          `inlet_problems{kind="channel_failing",state="opened"} ${count}\n`,
        ),
      );
    await metric(1);
    const secrets = [{ value: "a secret of some length" }];
    await call.put(`${path}/channels/closed`, { config: { secrets } });
    await one.over(failing);
    await metric(0);

    await db.updateTable("channels").set({ updatedAt: AN_HOUR_AGO }).where("uid", "=", "quiet").execute();
    const silent = await one.opened("channel_silent");
    expect(silent).toMatchObject({ channel: { uid: "quiet" }, figures: { expectEverySeconds: 60 } });
    await send(uidOf("quiet").id, {});
    await one.over(silent);

    const connection = await call.post("/connections", {
      name: "Calendar",
      kind: "oauth2",
      allowedOrigins: ["https://api.example.com"],
      config: {
        grant: "authorizationCode",
        clientId: "inlet",
        clientSecret: "secret",
        tokenEndpoint: "https://id.example.com/token",
        authorizationEndpoint: "https://id.example.com/authorize",
      },
    });
    const needs = await one.opened("connection_needs_reauth");
    expect(needs.connection).toEqual({ id: connection.id, name: "Calendar" });
    await db.updateTable("connections").set({ state: "error" }).where("id", "=", connection.id).execute();
    await one.over(needs);
    const broken = await one.opened("connection_failing");
    await call.delete(`/connections/${connection.id}`);
    await one.over(broken);

    handler.answers.set("/fails", () => ({ status: 500 }));
    const handled = { eventUid: "quiet:*", handler: { url: handler.urlOf("/fails") } };
    const subscription = await call.post(`${path}/events/subscribe`, handled);
    for (let n = 0; n < 20; n++) await send(uidOf("quiet").id, {});
    const handlerFails = await one.opened("handler_failing");
    expect(handlerFails.subscription).toEqual({ id: subscription.id, eventUid: "quiet:*" });
    expect(handlerFails.message).toContain("500");
    handler.answers.delete("/fails");
    await one.over(handlerFails);

    await send(uidOf("strict").id, { items: Array.from({ length: 100 }, (_, n) => ({ n })) });
    const growing = await one.opened("quarantine_growing");
    expect(growing).toMatchObject({ channel: { uid: "strict" }, figures: { itemsInAnHour: 100 } });
    const budget = `inlet:{q.${one.id}}:b`;
    await gateway.api("PUT", `/organizations/${one.id}/limits`, { quarantineBytes: 10 * 1024 * 1024 });
    await client.hset(budget, "t", 9.5 * 1024 * 1024);
    const nearly = await one.opened("quarantine_near_limit");
    expect(nearly).toMatchObject({ app: null, channel: null, message: expect.stringContaining("95 %") });
    await call.delete(`${path}/channels/strict`);
    await client.hset(budget, "t", 0);
    await one.over(growing);
    await one.over(nearly);

    const full = await call.post(`${path}/events/subscribe`, { eventUid: "full:*", startAt: "earliest" });
    const [topic] = full.topics;
    await client.xadd(topic, `${AN_HOUR_AGO.getTime()}-0`, "id", "1", "data", "x".repeat(4_000));
    const lagging = await one.opened("subscription_lagging");
    expect(lagging).toMatchObject({ subscription: { id: full.id }, figures: { lag: 1 } });
    for (let n = 0; n < 90; n++) await client.xadd(topic, "*", "id", String(n), "data", "x".repeat(4_000));
    const atRisk = await one.opened("retention_at_risk");
    await call.post(`${path}/subscriptions/${full.id}/rewind`, { startAt: "now" });
    await one.over(lagging);
    await one.over(atRisk);

    await gateway.api("PUT", `/organizations/${one.id}/limits`, { topicBytes: 1_000 });
    const storage = await one.opened("storage_near_limit");
    expect(storage).toMatchObject({ severity: "error", figures: { limitBytes: 1_000 } });
    await db.deleteFrom("organizationLimits").execute();
    await one.over(storage);

    // Each change of state was delivered exactly once, over all checks.
    await until(async () => {
      const all: readonly { readonly state: string }[] = await call.get("/problems?limit=200");
      const changes = all.reduce((sum, { state }) => sum + (state === "resolved" ? 2 : 1), 0);
      return one.receivedProblems().length === changes;
    });
    const receivedIds = one.receivedProblems().map(({ id }) => id);
    expect(new Set(receivedIds).size).toBe(receivedIds.length);
    const checks = await call.get("/problems/checks");
    expect(checks.every((check: { failingSince: unknown }) => check.failingSince === null)).toBe(true);
  });
});

describeDeep("the handler of problem events", () => {
  it("receives no events about its own failures, but another handler does", async () => {
    const one = await organization("/deaf");
    const other = await one.call.post(`/apps/${one.system.id}/events/subscribe`, {
      eventUid: "problems:handler_failing.opened",
      handler: { url: handler.urlOf("/other") },
    });
    handler.answers.set("/deaf", () => ({ status: 500 }));
    // Opens three problems whose events the handler rejects.
    for (let n = 0; n < 3; n++)
      await one.install({
        uid: "closed",
        kind: "webhook",
        events: [{ type: "e" }],
        config: {
          verification: { scheme: "hmac", algorithm: "sha256", encoding: "hex", in: "header", name: "x-s" },
        },
      });
    await until(() => handler.taken("/other").length > 0);
    const [failing] = await one.call.get("/problems?kind=handler_failing");
    expect(failing.subscription.id).toBe(one.subscription.id);
    handler.answers.delete("/deaf");
    await until(async () => (await one.call.get(`/problems/${failing.id}`)).state === "resolved");
    await until(() => one.receivedProblems().length === 3);
    // The handler has received all its events: the group has no lag, and no event was about the handler itself.
    const lag = `/apps/${one.system.id}/subscriptions/${one.subscription.id}/lag`;
    await until(async () => {
      const { lag: waiting, pending } = await one.call.get(lag);
      return waiting === 0 && pending === 0;
    });
    const own = handler
      .at("/deaf")
      .filter(({ headers }) => headers["ce-type"]?.startsWith("handler_failing"));
    expect(own).toEqual([]);
    expect(handler.at("/other").map(({ headers }) => headers["ce-subject"])).toEqual([one.subscription.id]);
    expect(other.topics).toHaveLength(1);
  });
});

describe("the system app", () => {
  it("`inlet` can be listed and read, but not changed, and the address of its channel cannot be rotated", async () => {
    const { call, system, id } = await organization("/system");
    expect(system).toMatchObject({ uid: "inlet", isSystem: true, spaceId: null, organizationId: id });
    const path = `/apps/${system.id}`;
    const [channel, ...others] = await call.get(`${path}/channels`);
    expect(others).toEqual([]);
    expect(channel).toMatchObject({ uid: "problems", url: null, state: "active" });
    const refused = [
      await call.expectRejection("DELETE", path),
      await call.expectRejection("POST", `${path}/upgrade`, {}),
      await call.expectRejection("POST", `${path}/channels`, { ...TRIVIAL, uid: "mine" }),
      await call.expectRejection("PUT", `${path}/channels/problems`, { title: "Mine" }),
      await call.expectRejection("DELETE", `${path}/channels/problems`),
      ...["pause", "resume", "rotate"].map((action) =>
        call.expectRejection("POST", `${path}/channels/problems/${action}`, {}),
      ),
    ];
    for (const { status, code } of await Promise.all(refused))
      expect({ status, code }).toEqual({ status: 409, code: "conflict" });
    expect((await send(channel.id, { specversion: "1.0" })).status).toBe(404);
    // The system app does not keep the organization from being deleted.
    for (const subscription of await call.get(`${path}/subscriptions`))
      await call.delete(`${path}/subscriptions/${subscription.id}`);
    expect(await call.delete(`/organizations/${id}`)).toEqual({ id });
  });
});
