import { beforeAll, describe, expect, it } from "vitest";
import { insertDeadLetter } from "../../../src/data/subscriptions/dead-letters.ts";
import { deadLettersKey } from "../../../src/event/subscription-keys.ts";
import { createRetryQueue } from "../../../src/handlers/retry-queue.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);

const events = [
  { type: "push", typePath: "$.type", idPath: "$.id", payloadPath: "$.data", schema: { type: "object" } },
];
const install = (config: object = {}) => spine.install({ uid: "main", kind: "webhook", config, events });
type App = Awaited<ReturnType<typeof install>>;
const listed = (app: App, query = "") => spine.api.call.get(`/apps/${app.id}/deliveries${query}`);
const whole = (app: App, id: string) => spine.api.call.get(`/apps/${app.id}/deliveries/${id}`);

/** Sends a delivery and waits until its record is written. */
async function deliver(app: App, body: unknown, headers: Record<string, string> = {}) {
  const result = await spine.deliver(app.channels[0].id, body, headers);
  await spine.path.recorder.flush();
  return result;
}
const pushed = (id: string, data: unknown = { n: 1 }) => ({ type: "push", id, data });

// The first delivery loads code, and its record may therefore be too late to be written. Repeats until a record is written.
beforeAll(async () => {
  const app = await install();
  await until(async () => {
    await deliver(app, pushed("first"));
    return (await listed(app)).length > 0;
  });
});

describe("the record of a delivery", () => {
  it("contains the request, the values that each path of an event definition selected, and the outcome", async () => {
    const app = await install();
    const text = '{"type":"push","id":"1","data":{"n":10000000000000000001}}';
    const result = await deliver(app, text, { "x-request-id": "req-1", "x-other": "kept" });
    if (result.kind !== "accepted") throw new Error(result.kind);
    const [summary] = await listed(app);
    expect(summary).toEqual({
      id: expect.stringMatching(/^del_/),
      appId: app.id,
      channelUid: "main",
      requestId: "req-1",
      traceId: null,
      traceUrl: null,
      clientAddress: "127.0.0.1",
      method: "POST",
      receivedAt: expect.stringMatching(/Z$/),
      durationMs: expect.any(Number),
      status: "published",
      httpStatus: 200,
      reason: null,
      verification: { result: "none", scheme: "none", preset: null, deliveryId: null },
      received: 1,
      published: 1,
      duplicates: 0,
      ignored: 0,
      quarantined: 0,
      quarantine: [],
      woken: [],
      events: result.outcome.events,
      bodyBytes: text.length,
    });
    const { bodyBase64, items, explanation, headers, query, ...rest } = await whole(app, summary.id);
    expect(rest).toEqual(summary);
    expect(Buffer.from(bodyBase64, "base64").toString()).toBe(text);
    expect([headers, query]).toEqual([
      { "content-type": "application/json", "x-request-id": "req-1", "x-other": "kept" },
      {},
    ]);
    expect(items).toMatchObject([
      {
        definitions: [
          {
            matches: true,
            typePath: { values: ["push"] },
            idPath: { values: ["1"] },
            payloadPath: { path: "$.data" },
            failure: null,
          },
        ],
      },
    ]);
    expect(explanation[0].events).toMatchObject([{ status: "duplicate" }]);
  });

  it("can be found by request id, event id, entry id, status, channel and time, oldest or newest first", async () => {
    const app = await install();
    const sent = await deliver(app, pushed("one"), { "x-request-id": "req-a" });
    // Records of the same millisecond have no defined order, so the second delivery waits for the next one.
    const sentAtMs = Date.now();
    await until(() => Date.now() > sentAtMs);
    await deliver(app, { type: "push", id: "two", data: "no object" }, { "x-request-id": "req-b" });
    const entryId = sent.kind === "accepted" ? sent.outcome.events[0]?.entryId : "";
    const idsBy = async (query: string) =>
      (await listed(app, query)).map(({ requestId }: { requestId: string }) => requestId);
    expect(await idsBy("?order=oldest")).toEqual(["req-a", "req-b"]);
    expect(await idsBy("?order=newest&limit=1")).toEqual(["req-b"]);
    expect(await idsBy("?requestId=req-a")).toEqual(["req-a"]);
    expect(await idsBy("?eventId=one")).toEqual(["req-a"]);
    expect(await idsBy(`?eventId=${entryId}`)).toEqual(["req-a"]);
    expect(await idsBy("?status=quarantined")).toEqual(["req-b"]);
    expect(await idsBy("?channel=main&from=2020-01-01T00:00:00Z")).toEqual(["req-a", "req-b"]);
    expect(await idsBy("?to=2020-01-01T00:00:00Z")).toEqual([]);
    expect(
      await spine.api.call.expectRejection("GET", `/apps/${app.id}/deliveries?channel=other`),
    ).toMatchObject({
      status: 404,
    });
  });

  it("shows the outcome when the delivery arrived, and the outcome that the current event definitions would have", async () => {
    const app = await install();
    await deliver(app, { kind: "push", id: "1", data: {} });
    const [{ id, status }] = await listed(app);
    const fixed = [{ ...events[0], typePath: "$.kind" }];
    await spine.api.call.put(`/apps/${app.id}/channels/main`, { events: fixed });
    const { items, explanation } = await whole(app, id);
    expect([status, items[0].definitions[0].typePath.path]).toEqual(["quarantined", "$.type"]);
    expect(items[0].failures).toMatchObject([{ reason: "no_match" }]);
    expect(explanation[0].events).toMatchObject([{ type: "push", status: "new" }]);
  });

  it("contains no credentials, secrets or channel addresses, neither in responses nor in Redis", async () => {
    const app = await install({ verification: { scheme: "token", in: "body", name: "$.token" } });
    const [{ id: address }] = app.channels;
    const token = "s3cret-t0ken";
    await spine.api.call.put(`/apps/${app.id}/channels/main`, { config: { secrets: [{ value: token }] } });
    const identified = [{ type: "push", idPath: "$.token" }];
    await spine.api.call.put(`/apps/${app.id}/channels/main`, { events: identified });
    await deliver(
      app,
      { token, hook: `https://hooks.example/hooks/${address}` },
      { "x-api-key": "an-api-key", referer: `https://x.example/hooks/${address}` },
    );
    const [summary] = await listed(app);
    const shown = await whole(app, summary.id);
    expect(shown.verification).toMatchObject({ result: "verified", scheme: "token" });
    const body = Buffer.from(shown.bodyBase64, "base64").toString();
    expect(JSON.parse(body)).toEqual({ token: "***", hook: "https://hooks.example/hooks/ch_***" });
    const key = `inlet:{d.${app.organizationId}}:r:${summary.id}`;
    const { b: base64 = "", ...parts } = await spine.server.client.hgetall(key);
    const stored = [...Object.values(parts), Buffer.from(base64, "base64").toString()];
    expect(stored.at(-1)).toBe(body);
    for (const text of [JSON.stringify([summary, shown]), body, ...stored])
      for (const hidden of [token, address, "an-api-key"]) expect(text).not.toContain(hidden);
  });

  it("contains only the headers and the rejection reason if the delivery was rejected", async () => {
    const app = await install({ verification: { scheme: "token", in: "header", name: "x-token" } });
    await spine.api.call.put(`/apps/${app.id}/channels/main`, {
      config: { secrets: [{ value: "right-token" }] },
    });
    await deliver(app, pushed("1"), { "x-token": "wrong-token", "x-other": "kept" });
    const [{ id }] = await listed(app, "?status=refused");
    const shown = await whole(app, id);
    expect(shown).toMatchObject({ httpStatus: 401, reason: expect.any(String), bodyBase64: null, items: [] });
    expect(shown.verification.result).toBe("refused");
    expect(shown.headers).toEqual({ "content-type": "application/json", "x-other": "kept" });
  });

  it("is not written if the channel has delivery records turned off", async () => {
    const app = await install({ deliveryRecords: false });
    await deliver(app, pushed("1"));
    expect(await listed(app)).toEqual([]);
  });

  it("can be read only with the permission deliveries.read, and each read is recorded in the audit log", async () => {
    const app = await install();
    await deliver(app, pushed("1"));
    const caller = spine.api.as(await spine.api.keyWith("deliveries.read"));
    const [{ id }] = await caller.get(`/apps/${app.id}/deliveries`);
    await caller.get(`/apps/${app.id}/deliveries/${id}`);
    const audit = await spine.api.call.get(`/audit?entity=delivery&entityId=${id}`);
    expect(audit).toMatchObject([{ action: "read" }]);
    const other = spine.api.as(await spine.api.keyWith("apps.read", "channels.read"));
    expect(await other.expectRejection("GET", `/apps/${app.id}/deliveries`)).toMatchObject({ status: 403 });
  });
});

describe("a preview of new event definitions on recorded deliveries", () => {
  it("counts events and failures by type and reason, with the current and the new event definitions", async () => {
    const app = await install();
    for (const [id, type] of [
      ["1", "push"],
      ["2", "pull"],
      ["3", "pull"],
    ])
      await deliver(app, { type, id, data: {} });
    const path = `/apps/${app.id}/deliveries/preview`;
    const same = await spine.api.call.post(path, { channelId: "main" });
    expect(same).toMatchObject({
      examined: 3,
      events: [{ name: "push", before: 1, after: 1 }],
      failures: [{ name: "no_match", before: 2, after: 2 }],
    });
    expect(same.items.map(({ isChanged }: { isChanged: boolean }) => isChanged)).toEqual([
      false,
      false,
      false,
    ]);
    const edited = [events[0], { ...events[0], type: "pull" }];
    const other = await spine.api.call.post(path, { channelId: "main", events: edited });
    expect(other).toMatchObject({
      events: [
        { name: "pull", before: 0, after: 2 },
        { name: "push", before: 1, after: 1 },
      ],
      failures: [{ name: "no_match", before: 2, after: 0 }],
    });
    expect(other.items.filter(({ isChanged }: { isChanged: boolean }) => isChanged)).toHaveLength(2);
    expect(await spine.api.call.get(`/apps/${app.id}/events`)).toHaveLength(1);
    const wrong = { channelId: "main", events: [{ type: "a", idPath: "$.[" }] };
    expect(await spine.api.call.expectRejection("POST", path, wrong)).toMatchObject({ status: 400 });
  });

  it("examines at most 5,000 items, and explains at most 100 items of each delivery", async () => {
    const app = await install({ itemsPath: "$.items", onNoMatch: "reject" });
    for (let n = 0; n < 6; n++) await deliver(app, { items: Array.from({ length: 1_000 }, () => 0) });
    const { examined, failures, items } = await spine.api.call.post(`/apps/${app.id}/deliveries/preview`, {
      channelId: "main",
    });
    expect([examined, failures[0].after]).toEqual([5, 5_000]);
    for (const { explanation } of items) expect(explanation).toHaveLength(100);
  });
});

describe("the API for readers of a delivery's events", () => {
  it("shows for each subscription whether an event is unread, pending, acknowledged, retried or a dead letter", async () => {
    const app = await install();
    const subscribe = async (handler?: object) =>
      (await spine.api.call.post(`/apps/${app.id}/events/subscribe`, { eventUid: "*", handler })).id;
    const handler = { url: "https://handler.example/" };
    const [unread, held, done] = [await subscribe(), await subscribe(), await subscribe()];
    const [retrying, dead] = [await subscribe(handler), await subscribe(handler)];
    const setAside = await subscribe();
    const sent = await deliver(app, pushed("1"));
    if (sent.kind !== "accepted") throw new Error(sent.kind);
    const { topic = "", entryId = "" } = sent.outcome.events[0] ?? {};
    const { client } = spine.server;
    for (const group of [held, done, retrying, dead, setAside])
      await client.xreadgroup("GROUP", group, "worker-1", "STREAMS", topic, ">");
    for (const group of [done, retrying, dead, setAside]) await client.xack(topic, group, entryId);
    for (const id of [entryId, "1-1"])
      await client.xadd(deadLettersKey(topic, setAside), "*", "entry-id", id, "attempts", "10");
    const attempt = { at: new Date().toISOString(), status: 503, code: "http", durationMs: 4 };
    const pending = { topic, entryId, fields: [], firstAtMs: Date.now() };
    const retries = createRetryQueue(spine.queue);
    await retries.add({ ...pending, subscriptionId: retrying, attempts: [attempt, attempt] }, 3_600_000);
    const letter = { subscriptionId: dead, topic, entryId, type: "push", fields: [], attempts: [attempt] };
    await insertDeadLetter(spine.api.database.db, { ...letter, reason: "HTTP 503" }, Date.now());
    const [{ id }] = await listed(app);
    const readings = await spine.api.call.get(`/apps/${app.id}/deliveries/${id}/readings`);
    const of = (subscriptionId: string) =>
      readings.find((one: { subscriptionId: string }) => one.subscriptionId === subscriptionId);
    expect(readings).toHaveLength(6);
    expect(of(unread)).toMatchObject({ state: "unread", reader: null, attempts: [] });
    expect(of(held)).toMatchObject({ state: "pending", reader: "worker-1", deliveries: 1 });
    expect(of(done)).toMatchObject({ state: "acknowledged", eventId: "1", entryId });
    expect(of(retrying)).toMatchObject({ state: "retrying", attempts: [attempt, attempt] });
    expect(of(dead)).toMatchObject({ state: "deadLetter", attempts: [attempt] });
    expect(of(setAside)).toMatchObject({ state: "deadLetter", attempts: [] });
    const readers = await spine.api.call.get(`/apps/${app.id}/subscriptions/${held}/readers`);
    expect(readers).toEqual([{ name: "worker-1", topics: 1, pending: 1, idleSeconds: expect.any(Number) }]);
    expect(await spine.api.call.get(`/apps/${app.id}/subscriptions/${unread}/readers`)).toEqual([]);
  });
});

describe("deleting data for privacy reasons", () => {
  it("also removes every delivery record that contains the deleted event, including records of repeated deliveries", async () => {
    const app = await install();
    await deliver(app, pushed("kept"));
    const sent = await deliver(app, pushed("gone", { person: "x" }));
    await deliver(app, pushed("gone", { person: "x" }));
    expect(await listed(app)).toHaveLength(3);
    if (sent.kind !== "accepted") throw new Error(sent.kind);
    const { topic, entryId } = sent.outcome.events[0] ?? { topic: "", entryId: "" };
    await spine.api.call.delete(`/apps/${app.id}/events/${encodeURIComponent(topic)}/${entryId}`);
    expect(await listed(app)).toMatchObject([{ events: [{ id: "kept" }] }]);
    // The gateway drops records that it has not yet written, because the deletion may cover them.
    await deliver(app, pushed("late"));
    expect(await listed(app)).toHaveLength(1);
  });

  it("also removes delivery records that are too large to list all events or to contain the body", async () => {
    const app = await install({ itemsPath: "$" });
    const pushes = (type: string) =>
      Array.from({ length: 150 }, (_, n) => ({ ...pushed(`${n}`, { text: "x".repeat(1_000) }), type }));
    const sent = await deliver(app, pushes("push"));
    await deliver(app, [pushed("0", { other: 1 })]);
    if (sent.kind !== "accepted") throw new Error(sent.kind);
    const { topic, entryId } = sent.outcome.events.at(-1) ?? { topic: "", entryId: "" };
    expect((await listed(app)).map(({ events }: { events: unknown[] }) => events.length)).toEqual([100, 0]);
    await spine.api.call.delete(`/apps/${app.id}/events/${encodeURIComponent(topic)}/${entryId}`);
    expect(await listed(app)).toMatchObject([{ received: 1 }]);

    const other = await install({ itemsPath: "$", onNoMatch: "quarantine" });
    const kept = await deliver(other, pushes("none"));
    if (kept.kind !== "accepted") throw new Error(kept.kind);
    expect(await listed(other)).toHaveLength(1);
    await spine.api.call.delete(`/apps/${other.id}/quarantine/${kept.outcome.quarantine.at(-1)?.id}`);
    expect(await listed(other)).toEqual([]);
  });

  it("also removes the delivery records of a quarantined item or a channel that is deleted", async () => {
    const app = await install();
    await deliver(app, { type: "push", id: "1", data: "no object" });
    const [{ id }] = await spine.api.call.get(`/apps/${app.id}/quarantine`);
    expect(await listed(app)).toHaveLength(1);
    await spine.api.call.delete(`/apps/${app.id}/quarantine/${id}`);
    expect(await listed(app)).toEqual([]);
    const other = await install();
    await deliver(other, pushed("1"));
    const { number } = await spine.api.database.db
      .selectFrom("channels")
      .select("number")
      .where("appId", "=", other.id)
      .executeTakeFirstOrThrow();
    const { organizationId } = other;
    await spine.path.deliveryRecords.purge(organizationId, number);
    expect(await listed(other)).toEqual([]);
    expect(await spine.server.client.exists(`inlet:{d.${organizationId}}:x:${number}`)).toBe(0);
  });
});

it("the figures of apps count channels, subscriptions, lag, dead letters and quarantined items of each app", async () => {
  const [app, other] = [await install(), await install()];
  await spine.api.call.post(`/apps/${app.id}/events/subscribe`, { eventUid: "*" });
  await deliver(app, pushed("1"));
  await deliver(app, { type: "push", id: "1", data: "no object" });
  const figures = async (list = spine.api.call.get("/overview/apps?limit=200")) =>
    new Map((await list).map((one: { id: string }) => [one.id, one]));
  const none = {
    channels: 1,
    channelsNotActive: 0,
    subscriptions: 0,
    subscriptionsFailing: 0,
    lag: 0,
    deadLetters: 0,
  };
  const { id, uid, title } = app;
  const found = await figures();
  expect(found.get(id)).toEqual({ id, uid, title, ...none, subscriptions: 1, lag: 1, quarantined: 1 });
  expect(found.get(other.id)).toMatchObject({ ...none, quarantined: 0 });
  const stranger = spine.api.as(await spine.api.createForeignKey());
  expect((await figures(stranger.get("/overview/apps?limit=200"))).has(id)).toBe(false);
});

it("the overview counts deliveries, backlog and dead letters of the caller's organization only", async () => {
  const stranger = spine.api.as(await spine.api.createForeignKey());
  const empty = await stranger.get("/overview");
  expect(empty).toEqual({
    bus: { ready: true, durability: expect.any(String), memoryUsedFraction: expect.any(Number) },
    deliveries: { byStatus: [], medianMs: null, p99Ms: null },
    subscriptions: { total: 0, lag: 0, lagSeconds: 0, pending: 0 },
    deadLetters: 0,
    openProblems: 0,
    mutedProblems: 0,
  });
  const app = await install();
  const before = await spine.api.call.get("/overview");
  await spine.api.call.post(`/apps/${app.id}/events/subscribe`, { eventUid: "*" });
  await deliver(app, pushed("1"));
  const after = await spine.api.call.get("/overview");
  expect(after.subscriptions.total).toBe(before.subscriptions.total + 1);
  expect(after.subscriptions.lag).toBe(before.subscriptions.lag + 1);
  expect(after.deliveries.p99Ms).toBeGreaterThanOrEqual(after.deliveries.medianMs);
  expect(after.deadLetters).toBeGreaterThan(0);
  expect(await stranger.get("/overview")).toEqual({ ...empty, bus: expect.anything() });
});
