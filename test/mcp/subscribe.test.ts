import { randomBytes } from "node:crypto";
import type { Client } from "@modelcontextprotocol/client";
import { sql } from "kysely";
import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { type GivenChannel, givenChannel } from "../support/channels.ts";
import { itDeep } from "../support/deep-run.ts";
import { givenGateway } from "../support/given-gateway.ts";
import { opened } from "../support/opened.ts";
import { until } from "../support/until.ts";
import { isSignedWith, type Message, startCallbackServer } from "./callback-server.ts";
import { connectAgent } from "./clients.ts";

// The regular check of all subscriptions would end some of them before their own trigger does.
const gateway = givenGateway(
  { INLET_ALLOW_NETWORKS: "127.0.0.0/8" },
  { handlersTiming: { sweepEveryMs: 3_600_000 } },
);
const callbacks = opened(startCallbackServer);

let client: Client;
beforeAll(async () => {
  client = await connectAgent(gateway);
});

const makeSecret = (bytes = 32): string => `whsec_${randomBytes(bytes).toString("base64")}`;

let made = 0;
/** Creates an app with an event type for agents, and a subscription request for it with a new callback URL. */
async function given(events: readonly object[] = [{ type: "tick", idPath: "$.n", agents: true }]) {
  const channel = await givenChannel(gateway, { uid: "in", events });
  const path = `/agent/${++made}`;
  const name = `${channel.appId}.in.tick`;
  const secret = makeSecret();
  const params = { name, delivery: { mode: "webhook", url: callbacks.urlOf(path), secret } };
  return { channel, path, name, secret, params };
}

async function send(to: GivenChannel, from: number, end: number): Promise<void> {
  for (let n = from; n < end; n++) await to.send({ n });
}

const subscribed = z.looseObject({
  id: z.string(),
  refreshBefore: z.string(),
  cursor: z.string(),
  truncated: z.boolean(),
});

const subscribe = (params: object, by = client) =>
  by.request({ method: "events/subscribe", params: { ...params } }, subscribed);

const unsubscribe = (params: object, by = client) =>
  by.request({ method: "events/unsubscribe", params: { ...params } }, z.looseObject({}));

async function findError(
  request: Promise<unknown>,
): Promise<{ code: number; message: string; data: unknown }> {
  const error = await request.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  return error as { code: number; message: string; data: unknown };
}

const numbersOf = (messages: readonly Message[]) =>
  messages.map(({ body }) => (body.data as { readonly n: number }).n);

const received = (path: string, count: number) => until(() => callbacks.events(path).length >= count);

/** Ids of the rows of an app's subscriptions of agents. */
async function rowsOf({ appId }: GivenChannel): Promise<readonly string[]> {
  const rows = await gateway.stores.db
    .selectFrom("subscriptions")
    .select("id")
    .where("appId", "=", appId)
    .where("agent", "is not", null)
    .execute();
  return rows.map(({ id }) => id);
}

const ended = (channel: GivenChannel) => until(async () => (await rowsOf(channel)).length === 0);

/** Waits until a subscription has no consumer group on the topic. It then reads no more events. */
async function groupRemoved(channel: GivenChannel, id: string | undefined): Promise<void> {
  const groups = async () =>
    JSON.stringify(await gateway.stores.client.xinfo("GROUPS", channel.topicOf("tick")));
  await until(async () => !(await groups()).includes(String(id)));
}

let keys = 0;
const keyWith = async (...permissions: string[]) => {
  const { id, key } = await gateway.api<{ id: string; key: string }>("POST", "/iam/api-keys", {
    name: `${permissions.join()} ${++keys}`,
    permissions,
  });
  return { id, key };
};

describe.concurrent("an agent's subscription", () => {
  it("starts after a signed challenge, and sends each event once, in order and signed", async () => {
    const { channel, path, name, secret, params } = await given();
    await send(channel, 0, 2);
    const { id, refreshBefore, truncated } = await subscribe(params);
    expect(truncated).toBe(false);
    expect(Date.parse(refreshBefore) - Date.now()).toBeGreaterThan(3_500_000);
    const [challenge] = callbacks.at(path);
    expect(challenge?.body).toMatchObject({ type: "verification" });
    await send(channel, 2, 12);
    await received(path, 10);
    expect(numbersOf(callbacks.events(path))).toEqual([2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
    for (const message of callbacks.at(path)) {
      expect(isSignedWith(secret, message)).toBe(true);
      expect(message.headers).toMatchObject({
        "content-type": "application/json",
        "x-mcp-subscription-id": id,
      });
    }
    const [first] = callbacks.events(path);
    expect(first?.headers["webhook-id"]).toBe(first?.body.eventId);
    expect(first?.body).toMatchObject({
      name,
      timestamp: expect.stringMatching(/Z$/),
      data: { n: 2 },
      cursor: expect.any(String),
      _meta: { "io.inlet/cloudevent": { id: "2", type: "tick" } },
    });
  });

  it("exists once for equal requests, whatever the order of their members, and is extended by each", async () => {
    const { channel, path, params } = await given();
    const filter = { type: "object", required: ["data"] };
    const first = await subscribe({ ...params, arguments: { filter }, ttlMs: 60_000 });
    const reordered = { filter: { required: ["data"], type: "object" } };
    const second = await subscribe({ ...params, arguments: reordered, cursor: first.cursor, ttlMs: null });
    expect(second).toMatchObject({ id: first.id, cursor: first.cursor, truncated: false });
    expect(Date.parse(second.refreshBefore) - Date.now()).toBeGreaterThan(86_000_000);
    expect(await rowsOf(channel)).toHaveLength(1);
    // One challenge is enough for a URL.
    expect(callbacks.at(path)).toHaveLength(1);
    const other = await subscribe({ ...params, arguments: { filter: true } });
    expect(other.id).not.toBe(first.id);
    expect(await rowsOf(channel)).toHaveLength(2);
  });

  it("keeps its lifetime between a minute and a day", async () => {
    const { params } = await given();
    const end = async (ttlMs: number) => Date.parse((await subscribe({ ...params, ttlMs })).refreshBefore);
    const before = Date.now();
    expect(await end(1)).toBeGreaterThan(before + 59_000);
    expect(await end(1e12)).toBeLessThanOrEqual(Date.now() + 86_400_000);
  });

  it("sends only events that match the filter", async () => {
    const { channel, path, params } = await given();
    const filter = { properties: { data: { properties: { n: { multipleOf: 3 } } } } };
    await subscribe({ ...params, arguments: { filter } });
    await send(channel, 1, 8);
    await received(path, 2);
    expect(numbersOf(callbacks.events(path))).toEqual([3, 6]);
  });

  it("starts after a cursor, and after an event within the same millisecond", async () => {
    const { channel, path, name, params } = await given();
    const poll = (cursor: string | null) =>
      client.request(
        { method: "events/poll", params: { name, cursor } },
        z.looseObject({ cursor: z.string(), events: z.array(z.looseObject({ cursor: z.string() })) }),
      );
    const { cursor } = await poll(null);
    await channel.send([]);
    const topic = channel.topicOf("tick");
    for (const n of [0, 1, 2]) {
      const data = JSON.stringify({ n });
      const fields = ["specversion", "1.0", "id", String(n), "source", "/s", "type", "tick"];
      await gateway.stores.client.xadd(topic, `9000000000000-${n}`, ...fields, "data", data);
    }
    const { events } = await poll(cursor);
    const [, second] = events.slice(-3);
    expect(await subscribe({ ...params, cursor: second?.cursor })).toMatchObject({ truncated: false });
    await received(path, 1);
    expect(numbersOf(callbacks.events(path))).toEqual([2]);
  });

  it("signs with the previous secret too after a refresh with a new one", async () => {
    const { channel, path, secret, params } = await given();
    await subscribe(params);
    const next = makeSecret(64);
    await subscribe({ ...params, delivery: { ...params.delivery, secret: next } });
    // The gateway may send the first events before it reads the new secret.
    const findEvent = () => callbacks.events(path).find((one) => isSignedWith(next, one));
    let n = 0;
    await until(async () => {
      await send(channel, n, ++n);
      return findEvent() !== undefined;
    });
    const event = findEvent();
    expect(event && isSignedWith(secret, event)).toBe(true);
  });

  it("replaces an event that is too large by its address", async () => {
    const { channel, path, params } = await given();
    await subscribe(params);
    await channel.send({ n: 1, text: "x".repeat(300 * 1024) });
    await received(path, 1);
    const [event] = callbacks.events(path);
    const { eventId, data } = event?.body as { eventId: string; data: { href: string } };
    expect(data).toMatchObject({ eventId, tooLarge: true });
    const { pathname } = new URL(data.href);
    const stored = await gateway.api<{ event: { data: { n: number } } }>("GET", pathname.replace("/v1", ""));
    expect(JSON.stringify(stored)).toContain('"n":1');
  });

  it("sends an event again after an error, but not after 413", async () => {
    const { channel, path, params } = await given();
    const failed: number[] = [];
    callbacks.react.set(path, ({ body }) => {
      const { n } = (body.data ?? {}) as { readonly n?: number };
      if (n === 0) return { status: 413 };
      if (n !== 1 || failed.length > 1) return undefined;
      failed.push(n);
      return { status: 503 };
    });
    await subscribe(params);
    await send(channel, 0, 3);
    await received(path, 2);
    expect(numbersOf(callbacks.events(path))).toEqual([1, 2]);
    const sent = callbacks.at(path).filter(({ body }) => "eventId" in body);
    expect(numbersOf(sent)).toEqual([0, 1, 1, 1, 2]);
  });

  it("sends a gap once if retention has removed events before they were read", async () => {
    const { channel, path, params } = await given();
    let isDown = true;
    callbacks.react.set(path, ({ body }) =>
      isDown && (body.data as { readonly n?: number } | undefined)?.n === 1 ? { status: 503 } : undefined,
    );
    await subscribe(params);
    await send(channel, 0, 2);
    await until(() => callbacks.at(path).length > 2);
    // The gateway reads ahead, but not as far.
    const adding = gateway.stores.client.pipeline();
    for (let n = 2; n <= 1_000; n++) {
      const data = JSON.stringify({ n });
      const fields = ["specversion", "1.0", "id", String(n), "source", "/s", "type", "tick"];
      adding.xadd(channel.topicOf("tick"), "*", ...fields, "data", data);
    }
    await adding.exec();
    await gateway.stores.client.xtrim(channel.topicOf("tick"), "MAXLEN", 1);
    isDown = false;
    await until(() => numbersOf(callbacks.events(path)).includes(1_000));
    await send(channel, 1_001, 1_002);
    await until(() => numbersOf(callbacks.events(path)).includes(1_001));
    expect(callbacks.events(path).length).toBeLessThan(1_000);
    const gaps = () => callbacks.at(path).filter(({ body }) => body.type === "gap");
    await until(() => gaps().length > 0);
    expect(gaps()).toHaveLength(1);
    // Events after the cursor of the gap are not missing.
    const cursor = gaps()[0]?.body.cursor;
    const polled = await client.request(
      { method: "events/poll", params: { name: params.name, cursor } },
      z.looseObject({ truncated: z.boolean(), events: z.array(z.looseObject({ data: z.unknown() })) }),
    );
    expect(polled).toMatchObject({
      truncated: false,
      events: [{ data: { n: 1_000 } }, { data: { n: 1_001 } }],
    });
  });

  it("is not a subscription of the API, and does not count as lag", async () => {
    const { channel, params } = await given();
    await subscribe(params);
    expect(await gateway.api("GET", `${channel.appPath}/subscriptions`)).toEqual([]);
    const overview = await gateway.api<{ subscriptions: { total: number } }>("GET", "/overview");
    expect(overview.subscriptions.total).toBe(0);
  });

  it("is in the audit log with each change of it", async () => {
    const { channel, params } = await given();
    await subscribe(params);
    const [row] = await rowsOf(channel);
    await subscribe(params);
    await unsubscribe(params);
    const path = `/audit?entity=subscription&entityId=${row}`;
    const entries = await gateway.api<{ action: string }[]>("GET", path);
    expect(entries.map(({ action }) => action).toSorted()).toEqual(["create", "delete", "update"]);
  });
});

describe.concurrent("an agent's subscription ends", () => {
  it("when the agent unsubscribes, which it can repeat", async () => {
    const { channel, params } = await given();
    await subscribe(params);
    await unsubscribe({ name: params.name, delivery: { url: params.delivery.url } });
    expect(await rowsOf(channel)).toEqual([]);
    expect(await unsubscribe(params)).toMatchObject({});
  });

  it("when its time is over, and resumes from the cursor of the last event", async () => {
    const { channel, path, params } = await given();
    await subscribe(params);
    await send(channel, 0, 2);
    await received(path, 2);
    const [id] = await rowsOf(channel);
    await sql`UPDATE subscriptions SET expires_at = now() - interval '1 second' WHERE id = ${id}`.execute(
      gateway.stores.db,
    );
    await ended(channel);
    await groupRemoved(channel, id);
    await send(channel, 2, 5);
    const cursor = callbacks.events(path).at(-1)?.body.cursor;
    expect(await subscribe({ ...params, cursor })).toMatchObject({ truncated: false });
    await received(path, 5);
    expect(numbersOf(callbacks.events(path))).toEqual([0, 1, 2, 3, 4]);
  });

  it("when its time is over, and says if retention has removed events meanwhile", async () => {
    const { channel, path, params } = await given();
    await subscribe(params);
    await send(channel, 0, 1);
    await received(path, 1);
    const [id] = await rowsOf(channel);
    await unsubscribe(params);
    await groupRemoved(channel, id);
    await send(channel, 1, 4);
    const cursor = callbacks.events(path).at(-1)?.body.cursor;
    await gateway.stores.client.xtrim(channel.topicOf("tick"), "MAXLEN", 1);
    expect(await subscribe({ ...params, cursor })).toMatchObject({ truncated: true });
    await received(path, 2);
    expect(numbersOf(callbacks.events(path))).toEqual([0, 3]);
  });

  it("when the agent's endpoint responds 410", async () => {
    const { channel, path, params } = await given();
    callbacks.react.set(path, ({ body }) => ("eventId" in body ? { status: 410 } : undefined));
    await subscribe(params);
    await send(channel, 0, 1);
    await ended(channel);
  });

  it("after its key was revoked or lost a permission, without waiting for the regular check, and the agent is told", async () => {
    for (const how of ["revoke", "role"] as const) {
      const role = await gateway.api<{ id: string }>("POST", "/iam/roles", {
        name: how,
        permissions: ["apps.read", "apps.write"],
      });
      const { id, key } = await gateway.api<{ id: string; key: string }>("POST", "/iam/api-keys", {
        name: how,
        permissions: ["apps.read"],
        roleIds: [role.id],
      });
      const agent = await connectAgent(gateway, { token: key });
      const { channel, path, params } = await given();
      await subscribe(params, agent);
      if (how === "revoke") await gateway.api("DELETE", `/iam/api-keys/${id}`);
      else await gateway.api("PUT", `/iam/roles/${role.id}`, { permissions: ["apps.read"] });
      await ended(channel);
      await until(() => callbacks.at(path).length === 2);
      expect(callbacks.at(path).at(-1)?.body).toMatchObject({ type: "terminated", error: { code: -32012 } });
    }
  });

  it("when its event type is closed to agents", async () => {
    const { channel, path, params } = await given();
    await subscribe(params);
    await gateway.api("PUT", channel.path, { events: [{ type: "tick", idPath: "$.n" }] });
    await ended(channel);
    await until(() => callbacks.at(path).length === 2);
    expect(callbacks.at(path).at(-1)?.body).toMatchObject({
      type: "terminated",
      error: { code: -32011, data: { kind: "event" } },
    });
  });

  it("when its app is deleted", async () => {
    const { channel, params } = await given();
    await subscribe(params);
    await gateway.api("DELETE", channel.appPath);
    expect(await rowsOf(channel)).toEqual([]);
  });
});

describe("events/subscribe", () => {
  it.each([
    ["another mode", { mode: "email" }, -32014, { feature: "deliveryMode", value: "email" }],
    ["a secret that is too short", { secret: makeSecret(23) }, -32602, undefined],
    ["a secret that is too long", { secret: makeSecret(65) }, -32602, undefined],
    ["a plain URL of a public address", { url: "http://198.51.100.1/hook" }, -32602, undefined],
    ["a private address", { url: "https://10.0.0.1/hook" }, -32602, undefined],
    ["a URL with credentials", { url: "https://me:pw@example.com/" }, -32602, undefined],
    ["a URL with a fragment", { url: "https://example.com/#x" }, -32602, undefined],
  ])("rejects %s", async (_, delivery, code, data) => {
    const { params } = await given();
    const error = await findError(subscribe({ ...params, delivery: { ...params.delivery, ...delivery } }));
    expect(error).toMatchObject({ code, ...(data && { data }) });
  });

  it("names the blocked callback URL, its field and the setting that allows it", async () => {
    const { params } = await given();
    const delivery = { ...params.delivery, url: "https://10.0.0.1/hook" };
    const { message } = await findError(subscribe({ ...params, delivery }));
    for (const named of ["delivery.url", "https://10.0.0.1", "INLET_ALLOW_NETWORKS"])
      expect(message).toContain(named);
  });

  it.each([
    ["http_4xx", 404],
    ["http_5xx", 500],
    ["challenge_failed", 200],
  ])("reports %s, without the response, if the callback URL does not confirm", async (reason, status) => {
    const { channel, path, params } = await given();
    callbacks.react.set(path, () => ({ status, body: '{"challenge": "internal secret"}' }));
    const error = await findError(subscribe(params));
    expect(error).toMatchObject({ code: -32015, data: { reason } });
    expect(JSON.stringify(error) + error.message).not.toContain("internal secret");
    expect(await rowsOf(channel)).toEqual([]);
  });

  it("reports a callback URL that refuses connections", async () => {
    const { params } = await given();
    const delivery = { ...params.delivery, url: "http://127.0.0.1:1/" };
    expect(await findError(subscribe({ ...params, delivery }))).toMatchObject({
      code: -32015,
      data: { reason: "connection_refused" },
    });
  });

  it.each([
    ["the key is revoked", -32012],
    ["the event type is closed", -32011],
  ])("starts no subscription if %s during the challenge", async (change, code) => {
    const { id, key } = await keyWith("apps.read", "apps.write");
    const agent = await connectAgent(gateway, { token: key });
    const { channel, path, params } = await given();
    callbacks.react.set(path, async () => {
      if (code === -32012) await gateway.api("DELETE", `/iam/api-keys/${id}`);
      else await gateway.api("PUT", channel.path, { events: [{ type: "tick", idPath: "$.n" }] });
      return undefined;
    });
    expect(await findError(subscribe(params, agent)), change).toMatchObject({ code });
    expect(await rowsOf(channel)).toEqual([]);
  });

  it("requires a challenge for each caller of a URL", async () => {
    const { path, params } = await given();
    await subscribe(params);
    const { key } = await keyWith("apps.read", "apps.write");
    const other = await subscribe(params, await connectAgent(gateway, { token: key }));
    expect(callbacks.at(path).map(({ body }) => body.type)).toEqual(["verification", "verification"]);
    expect(callbacks.at(path)[1]?.headers["x-mcp-subscription-id"]).toBe(other.id);
  });

  it("needs the permission apps.write", async () => {
    const { params } = await given();
    const { key } = await keyWith("apps.read");
    const limited = await connectAgent(gateway, { token: key });
    expect(await findError(subscribe(params, limited))).toMatchObject({ code: -32012 });
    expect(await findError(unsubscribe(params, limited))).toMatchObject({ code: -32012 });
  });

  itDeep("rejects the subscription above the limit of a caller, until another one ends", async () => {
    const { params } = await given();
    const { key } = await keyWith("apps.read", "apps.write");
    const agent = await connectAgent(gateway, { token: key });
    const numbered = (n: number) => ({ ...params, arguments: { filter: { minProperties: n } } });
    await subscribe(numbered(0), agent);
    for (let n = 1; n < 100; n += 11)
      await Promise.all(Array.from({ length: 11 }, (_, i) => subscribe(numbered(n + i), agent)));
    const error = await findError(subscribe(numbered(100), agent));
    expect(error).toMatchObject({ code: -32013, data: { limit: "subscriptions", max: 100 } });
    await subscribe(numbered(5), agent);
    await unsubscribe(numbered(5), agent);
    await subscribe(numbered(100), agent);
  });
});
