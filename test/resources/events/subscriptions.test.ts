import { describe, expect, it } from "vitest";
import { insertDeadLetter } from "../../../src/data/subscriptions/dead-letters.ts";
import type { Answer } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";
import { startRedis } from "../../support/redis.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);

const channel = (uid: string, ...types: string[]) => ({
  uid,
  kind: "webhook",
  events: types.map((type) => ({ type, ...(types.length > 1 ? { typePath: "$.t" } : {}) })),
});
const subscribe = (appId: string, body: object): Promise<Answer> =>
  spine.api.call("POST", `/apps/${appId}/events/subscribe`, body);
/** Returns a created subscription as lists show it, without `connectedChannels`. */
const listed = (made: object): object => ({ ...made, connectedChannels: undefined });
const read = async (topic: string, group: string): Promise<string[]> => {
  const reply = await spine.server.client.xreadgroup(
    "GROUP",
    group,
    "me",
    "COUNT",
    100,
    "STREAMS",
    topic,
    ">",
  );
  const [[, entries] = ["", []]] = (reply ?? []) as [string, [string, string[]][]][];
  return entries.map(([entryId]) => entryId);
};

describe("subscribing to an app's events", () => {
  it("creates a subscription, its consumer group on every topic, and the set of its topics in Redis", async () => {
    const app = await spine.install(channel("main", "push", "a:b c"), channel("second", "x"));
    const { status, body } = await subscribe(app.id, { eventUid: "main:*" });
    expect(status).toBe(200);
    expect(body).toEqual({
      id: expect.stringMatching(/^sub_[a-z0-9]{23}$/),
      appId: app.id,
      eventUid: "main:*",
      connectionId: null,
      state: "active",
      startAt: "now",
      topics: [expect.stringMatching(/\.main\.a:b%20c$/), expect.stringMatching(/\.main\.push$/)],
      group: body.id,
      handler: null,
      when: null,
      lastError: null,
      lag: 0,
      lagSeconds: 0,
      pending: 0,
      deadLetters: 0,
      connectedChannels: [],
      createdAt: expect.stringMatching(/^\d{4}-.*\.\d{3}Z$/),
      updatedAt: body.createdAt,
    });
    expect((await spine.server.client.smembers(`inlet:sub:${body.id}`)).sort()).toEqual(body.topics);
    for (const topic of body.topics) expect(await spine.groups.find(topic, body.id)).toBeDefined();
    expect(await spine.api.call.get(`/apps/${app.id}/subscriptions/${body.id}`)).toEqual(listed(body));
    expect((await subscribe(app.id, { eventUid: "main:*" })).body.id).not.toBe(body.id);
  });

  it("shows the last error that a reader reported, and ignores an unreadable one", async () => {
    const app = await spine.install(channel("main", "push"));
    const { id } = (await subscribe(app.id, { eventUid: "*" })).body;
    const key = `inlet:sub:${id}:error`;
    const at = "2026-01-02T03:04:05.006Z";
    const lastError = async () => (await spine.api.call.get(`/apps/${app.id}/subscriptions/${id}`)).lastError;
    await spine.server.client.hset(key, { at, message: "no such column" });
    const message = "A reader failed to handle an event: no such column";
    expect(await lastError()).toEqual({ code: "reader", at, message });
    await spine.server.client.hset(key, { at: "yesterday" });
    expect(await lastError()).toBeNull();
    await spine.server.client.unlink(key);
    await spine.server.client.set(key, "of another type");
    expect(await lastError()).toBeNull();
  });

  it("covers one event type (even with colons in its name), one channel or the whole app", async () => {
    const app = await spine.install(channel("main", "push", "a:b"), channel("second", "x"));
    const covered = async (eventUid: string) =>
      (await subscribe(app.id, { eventUid })).body.topics.map(
        (topic: string) => topic.split(`${app.id}.`)[1],
      );
    expect(await covered("main:a:b")).toEqual(["main.a:b"]);
    expect(await covered("main:push")).toEqual(["main.push"]);
    expect(await covered("second:*")).toEqual(["second.x"]);
    expect(await covered("*")).toEqual(["main.a:b", "main.push", "second.x"]);
  });

  it("starts at new entries, at the first entry, or at a given time including all entries of that millisecond", async () => {
    const app = await spine.install(channel("main", "push"));
    const [{ id: channelId }] = app.channels;
    const send = async () => (await spine.send(channelId, { n: Math.random() })).events[0]?.entryId ?? "";
    const first = await send();
    const second = await send();
    const time = new Date(Number.parseInt(second, 10)).toISOString();
    const earliest = (await subscribe(app.id, { eventUid: "*", startAt: "earliest" })).body;
    const timed = (await subscribe(app.id, { eventUid: "*", startAt: time })).body;
    expect([earliest.startAt, earliest.lag, timed.startAt]).toEqual(["earliest", 2, time]);
    const now = (await subscribe(app.id, { eventUid: "*", startAt: "now" })).body;
    const third = await send();
    const [topic] = now.topics;
    expect(await read(topic, earliest.id)).toEqual([first, second, third]);
    const sameMs = Number.parseInt(first, 10) === Number.parseInt(second, 10);
    expect(await read(topic, timed.id)).toEqual(sameMs ? [first, second, third] : [second, third]);
    expect((await read(topic, now.id)).at(-1)).toBe(third);
    expect((await read(topic, now.id)).length).toBe(0);
  });

  it("counts the entries that are not delivered yet, even if the start time is between two entries", async () => {
    const app = await spine.install(channel("main", "push"));
    const [{ id: channelId }] = app.channels;
    await spine.send(channelId, { n: 1 });
    const { body } = await subscribe(app.id, {
      eventUid: "*",
      startAt: new Date(Date.now() + 1).toISOString(),
    });
    const lag = async () => (await spine.api.call.get(`/apps/${app.id}/subscriptions/${body.id}`)).lag;
    expect(await lag()).toBe(0);
    await until(() => Date.now() > Date.parse(body.startAt));
    for (let n = 2; n < 5; n++) await spine.send(channelId, { n });
    expect(await lag()).toBe(3);
    await read(body.topics[0], body.id);
    expect(await lag()).toBe(0);
  });

  it("returns the age of the oldest undelivered entry, and the number of pending entries and dead letters", async () => {
    const { server, api } = spine;
    const app = await spine.install(channel("main", "a", "b"));
    const [{ id: channelId }] = app.channels;
    const { body } = await subscribe(app.id, { eventUid: "*", startAt: "earliest" });
    const path = `/apps/${app.id}/subscriptions/${body.id}`;
    expect(await api.call.get(`${path}/lag`)).toEqual({ lag: 0, lagSeconds: 0, pending: 0 });
    const [sent] = (await spine.send(channelId, { t: "a" })).events;
    await spine.send(channelId, { t: "b" });
    const [seconds, microseconds] = await server.client.time();
    const ageSeconds =
      Number(seconds) + Number(microseconds) / 1e6 - Number.parseInt(sent?.entryId ?? "", 10) / 1e3;
    const waiting = await api.call.get(`${path}/lag`);
    expect(waiting).toEqual({ lag: 2, lagSeconds: expect.any(Number), pending: 0 });
    expect(waiting.lagSeconds).toBeGreaterThanOrEqual(Math.floor(ageSeconds * 1e3) / 1e3);

    const [a, b] = body.topics;
    await read(a, body.id);
    await server.client.xadd(`{${b}}:dead:${body.id}`, "*", "entry", "1-1");
    await insertDeadLetter(
      api.database.db,
      {
        subscriptionId: body.id,
        topic: b,
        entryId: "1-2",
        type: "b",
        fields: [],
        attempts: [],
        reason: "HTTP 500",
      },
      Date.now(),
    );
    expect(await api.call.get(`${path}/lag`)).toMatchObject({ lag: 1, pending: 1 });
    const shown = { lag: 1, lagSeconds: expect.any(Number), pending: 1, deadLetters: 2 };
    expect(await api.call.get(path)).toMatchObject(shown);
    expect(await api.call.get(`/apps/${app.id}/subscriptions`)).toMatchObject([shown]);
    expect(await api.call.expectRejection("GET", `${path.slice(0, -1)}_/lag`)).toMatchObject({ status: 404 });
  });

  it("rejects an invalid event uid, time, handler or filter", async () => {
    const app = await spine.install(channel("main", "push"));
    for (const [body, path] of [
      [{ eventUid: "main" }, "eventUid"],
      [{ eventUid: "ma in:push" }, "eventUid"],
      [{ eventUid: "main:" }, "eventUid"],
      [{ eventUid: "*", startAt: "later" }, "startAt"],
      [{ eventUid: "*", startAt: "2026-01-01" }, "startAt"],
      [{ eventUid: "*", handler: { url: "https://x.example", timeoutMs: 1 } }, "handler.timeoutMs"],
      [{ eventUid: "*", when: true }, "when"],
      [{ eventUid: "*", handler: null, when: {} }, "when"],
      [{ eventUid: "*", handler: { url: "https://x.example" }, when: { type: "text" } }, "when/type"],
      [{ eventUid: "*", handler: { url: "https://x.example" }, when: { pattern: "(?=a)" } }, "when/pattern"],
      [{ eventUid: "*", handler: { url: "https://x.example" }, when: "text" }, "when"],
    ] as const) {
      expect(await spine.api.call.expectRejection("POST", `/apps/${app.id}/events/subscribe`, body)).toEqual({
        status: 400,
        code: "invalid_parameters",
        paths: [path],
      });
    }
  });

  it.each([
    ["http://127.0.0.1:3000/", "127.0.0.1"],
    ["http://localhost/", "private address"],
    ["https://0x7f.1/", "127.0.0.1"],
    ["http://[::1]/", "::1"],
    ["http://[::ffff:10.0.0.1]/", "private address"],
    ["http://192.168.1.1/", "192.168.1.1"],
    ["http://169.254.169.254/latest", "169.254.169.254"],
  ])("rejects a handler at the private address %s, and says how to allow it", async (url, named) => {
    const app = await spine.install(channel("main", "push"));
    const { status, body } = await subscribe(app.id, { eventUid: "*", handler: { url } });
    expect(status).toBe(400);
    expect(body.details).toEqual([{ path: "handler.url", message: expect.stringContaining(named) }]);
    const { message } = body.details[0];
    expect(message).toContain(`${new URL(url).origin} leads to`);
    expect(message).toContain("INLET_ALLOW_NETWORKS");
    expect(await subscriptionRows(app.id)).toBe(0);
  });

  it("accepts a handler whose name does not resolve now, because it may resolve later", async () => {
    const app = await spine.install(channel("main", "push"));
    const handler = { url: "https://not-deployed-yet.example/" };
    expect((await subscribe(app.id, { eventUid: "*", handler })).status).toBe(200);
  });

  it("responds with 404 if the app, the channel, the event definition or the connection does not exist", async () => {
    const app = await spine.install(channel("main", "push"));
    const status = async (appId: string, body: object) => (await subscribe(appId, body)).status;
    expect(await status(`${app.id.slice(0, -3)}000`, { eventUid: "*" })).toBe(404);
    expect(await status(app.id, { eventUid: "nope:push" })).toBe(404);
    expect(await status(app.id, { eventUid: "nope:*" })).toBe(404);
    expect(await status(app.id, { eventUid: "main:nope" })).toBe(404);
    expect(await status(app.id, { eventUid: "main:push", connectionId: "con_1" })).toBe(404);
    expect(await status(app.id, { eventUid: "main:push", connectionId: null })).toBe(200);
    expect(await subscriptionRows(app.id)).toBe(1);
  });

  it("responds with 409 if the app has no channels, or if the subscription would cover more than 1,000 topics", async () => {
    const empty = await spine.install();
    expect((await subscribe(empty.id, { eventUid: "*" })).status).toBe(409);
    const types = Array.from({ length: 1_000 }, (_, i) => `t${i}`);
    const app = await spine.install(channel("main", ...types), channel("second", "one"));
    expect((await subscribe(app.id, { eventUid: "*" })).status).toBe(409);
    expect(await subscriptionRows(app.id)).toBe(0);
    const most = await subscribe(app.id, { eventUid: "main:*" });
    expect([most.status, most.body.topics.length, most.body.lag]).toEqual([200, 1_000, 0]);
  });

  it("responds with 503 and stores no subscription while Redis is unavailable, and existing subscriptions are listed without lag", async () => {
    const server = await startRedis();
    await using away = await startTestSpine({ server });
    const app = await away.install(channel("main", "push"));
    const path = `/apps/${app.id}/events/subscribe`;
    const made = await away.api.call.post(path, { eventUid: "*" });
    server.signal("SIGKILL");
    expect(await away.api.call.expectRejection("POST", path, { eventUid: "*" })).toEqual({
      status: 503,
      code: "unavailable",
    });
    const rows = await away.api.database.db.selectFrom("subscriptions").select("id").execute();
    expect(rows).toEqual([{ id: made.id }]);
    expect(await away.api.call.get(`/apps/${app.id}/subscriptions`)).toEqual([
      { ...listed(made), lag: null, lagSeconds: null, pending: null, deadLetters: null },
    ]);
  });
});

describe("the subscriptions of an app", () => {
  it("are listed in pages, in order of creation, with the total count", async () => {
    const app = await spine.install(channel("main", "push"));
    const made: object[] = [];
    for (let i = 0; i < 3; i++) made.push((await subscribe(app.id, { eventUid: "*" })).body);
    const list = (query: string) => spine.api.call("GET", `/apps/${app.id}/subscriptions${query}`);
    expect((await list("")).body).toEqual(made.map(listed));
    const page = await list("?limit=1&offset=1");
    expect([page.body, page.headers.get("x-total-count")]).toEqual([[listed(made[1] ?? {})], "3"]);
  });

  it("can be deleted, which schedules the cleanup of their Redis keys", async () => {
    const app = await spine.install(channel("main", "push"));
    const { id } = (await subscribe(app.id, { eventUid: "*" })).body;
    expect(await spine.api.call("DELETE", `/apps/${app.id}/subscriptions/${id}`)).toMatchObject({
      status: 200,
      body: { id },
    });
    const { db } = spine.api.database;
    const removals = await db.selectFrom("removals").select("removal").execute();
    expect(removals.map(({ removal }) => removal)).toContainEqual({
      kind: "subscription",
      id,
      organizationId: app.organizationId,
    });
    const changes = await db.selectFrom("changes").select(["kind", "key"]).where("key", "=", id).execute();
    // One row is for the creation and one for the deletion.
    expect(changes).toHaveLength(2);
    for (const method of ["GET", "DELETE"]) {
      expect((await spine.api.call(method, `/apps/${app.id}/subscriptions/${id}`)).status).toBe(404);
    }
  });

  it("are not found under another app of the organization", async () => {
    const app = await spine.install(channel("main", "push"));
    const other = await spine.install(channel("main", "push"));
    const { id } = (await subscribe(app.id, { eventUid: "*" })).body;
    for (const method of ["GET", "DELETE"])
      expect((await spine.api.call(method, `/apps/${other.id}/subscriptions/${id}`)).status).toBe(404);
    expect(await subscriptionRows(app.id)).toBe(1);
  });
});

async function subscriptionRows(appId: string): Promise<number> {
  const rows = await spine.api.database.db
    .selectFrom("subscriptions")
    .select("id")
    .where("appId", "=", appId)
    .execute();
  return rows.length;
}
