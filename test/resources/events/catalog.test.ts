import { beforeAll, describe, expect, it } from "vitest";
import { itDeep } from "../../support/deep-run.ts";
import { opened } from "../../support/opened.ts";
import { startTestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const spine = opened(startTestSpine);

const SCHEMA = { type: "object", properties: { n: { type: "integer" } } };
const EVENTS = [
  { type: "push", typePath: "$.type", idPath: "$.id", payloadPath: "$.data", schema: SCHEMA, agents: true },
  { type: "gone", typePath: "$.type", idPath: "$.id" },
];
const SECRET = "whsec_the-secret-of-this-channel";
const CONFIG = { verification: { scheme: "token", in: "header", name: "x-token" } };

const install = (...others: object[]) =>
  spine.install({ uid: "main", kind: "webhook", config: CONFIG, events: EVENTS }, ...others);
type App = Awaited<ReturnType<typeof install>>;
const catalog = (app: App, query = "", call = spine.api.call) => call.get(`/apps/${app.id}/catalog${query}`);

async function deliver(app: App, body: unknown): Promise<void> {
  const result = await spine.deliver(app.channels[0].id, body, { "x-token": SECRET });
  expect(result.kind).toBe("accepted");
  await spine.path.recorder.flush();
}

const setSecret = (app: App) =>
  spine.api.call.put(`/apps/${app.id}/channels/main`, {
    config: { ...CONFIG, secrets: [{ value: SECRET }] },
  });

/** Sends a delivery until its record is written, because the first one loads code and may be recorded too late. */
async function deliverRecorded(app: App, body: (n: number) => unknown): Promise<void> {
  let n = 0;
  await until(async () => {
    await deliver(app, body(++n));
    return (await spine.api.call.get(`/apps/${app.id}/deliveries`)).length > 0;
  });
}

describe("the catalog of an app", () => {
  let app: App;
  let other: App;
  beforeAll(async () => {
    app = await install({
      uid: "github",
      kind: "webhook",
      config: { preset: "github" },
      events: [{ type: "push" }],
    });
    other = await install();
    await setSecret(app);
    await deliverRecorded(app, (n) => ({
      type: "push",
      id: String(n),
      data: { n: 1, text: `token ${SECRET}` },
    }));
  });

  it("lists each event type by channel and type, with its topic, schema, activity and whether agents may use it", async () => {
    const { body, headers } = await spine.api.call("GET", `/apps/${app.id}/catalog`);
    expect(headers.get("x-total-count")).toBe("3");
    const topicOf = (uid: string, type: string) =>
      `events.${app.organizationId}.apps.app.event_received.${app.id}.${uid}.${type}`;
    expect(body.map(({ example: _, ...entry }: { example: unknown }) => entry)).toEqual([
      {
        channelUid: "github",
        type: "push",
        topic: topicOf("github", "push"),
        schema: null,
        agents: false,
        exampleSource: "preset",
        eventsLastDay: 0,
        eventsLastDayIsExact: true,
        lastSeenAt: null,
      },
      {
        channelUid: "main",
        type: "gone",
        topic: topicOf("main", "gone"),
        schema: null,
        agents: false,
        exampleSource: null,
        eventsLastDay: 0,
        eventsLastDayIsExact: true,
        lastSeenAt: null,
      },
      {
        channelUid: "main",
        type: "push",
        topic: topicOf("main", "push"),
        schema: SCHEMA,
        agents: true,
        exampleSource: "delivery",
        eventsLastDay: expect.any(Number),
        eventsLastDayIsExact: true,
        lastSeenAt: expect.stringMatching(/Z$/),
      },
    ]);
    expect(body[2].eventsLastDay).toBeGreaterThan(0);
  });

  it("shows the data of the newest stored delivery without secrets, or else that of the preset's sample", async () => {
    const [github, gone, push] = await catalog(app);
    expect(github.example).toEqual({ ref: "refs/heads/main", installation: { id: 12345678 } });
    expect(gone.example).toBeNull();
    expect(push.example).toEqual({ n: 1, text: "token ***" });
    const reads = await spine.api.call.get("/audit?entity=delivery");
    expect(reads).toContainEqual(expect.objectContaining({ action: "read", entity: "delivery" }));
  });

  it("shows no examples to callers without deliveries.read, and needs apps.read", async () => {
    const reader = await spine.api.as(await spine.api.keyWith("apps.read"));
    for (const entry of await catalog(app, "", reader))
      expect(entry).toMatchObject({ example: null, exampleSource: null });
    const stranger = await spine.api.as(await spine.api.keyWith("deliveries.read"));
    expect(await stranger.expectRejection("GET", `/apps/${app.id}/catalog`)).toMatchObject({ status: 403 });
  });

  it("is listed in pages, and can be limited to a channel", async () => {
    const typesOf = async (query: string) =>
      (await catalog(app, query)).map((entry: { channelUid: string; type: string }) => [
        entry.channelUid,
        entry.type,
      ]);
    expect(await typesOf("?limit=1&offset=1")).toEqual([["main", "gone"]]);
    expect(await typesOf("?channel=github")).toEqual([["github", "push"]]);
    expect(await spine.api.call.expectRejection("GET", `/apps/${app.id}/catalog?channel=none`)).toMatchObject(
      {
        status: 404,
      },
    );
  });

  it("leaves out the types of removed definitions, and keeps apps apart", async () => {
    await spine.api.call.put(`/apps/${other.id}/channels/main`, { events: [EVENTS[1]] });
    const entries = await catalog(other);
    expect(entries).toMatchObject([{ type: "gone", eventsLastDay: 0, example: null }]);
  });

  itDeep("ends a page before its schemas exceed 4 MiB", async () => {
    const schema = { description: "x".repeat(450_000) };
    const [first, ...others] = ["a", "b", "c", "d", "e"].map((uid) => ({
      uid,
      kind: "webhook",
      events: [
        { type: "one", schema },
        { type: "two", schema },
      ],
    }));
    const large = await spine.install(first ?? {});
    for (const channel of others) await spine.api.call.post(`/apps/${large.id}/channels`, channel);
    const { body, headers } = await spine.api.call("GET", `/apps/${large.id}/catalog`);
    expect([body.length, headers.get("x-total-count")]).toEqual([9, "10"]);
    expect(await catalog(large, "?offset=9")).toMatchObject([{ channelUid: "e", type: "two" }]);
  });
});

describe("the documents about the events of an app", () => {
  it("contain all event types, or those of a channel, for callers with apps.read", async () => {
    const app = await install({
      uid: "github",
      kind: "webhook",
      config: { preset: "github" },
      events: [{ type: "push", schema: { properties: { ref: { type: "string" } }, required: ["ref"] } }],
    });
    const reader = spine.api.as(await spine.api.keyWith("apps.read"));
    const asyncApi = await reader.get(`/apps/${app.id}/asyncapi.json`);
    expect(asyncApi.asyncapi).toBe("3.1.0");
    expect(Object.keys(asyncApi.channels)).toEqual(["GithubPush", "MainGone", "MainPush"]);
    const { body, headers } = await reader("GET", `/apps/${app.id}/types.ts?channel=github`);
    expect(headers.get("content-type")).toMatch("text/plain");
    expect(body).toContain('"*": unknown;\n  push: GithubPush;\n}\n');
    expect(body).toContain("export type GithubPush = {\n  ref: string;\n};\n");
    const all = await reader.get(`/apps/${app.id}/types.ts`);
    expect(all).toContain('"*": unknown;\n  push: GithubPush | MainPush;\n  gone: unknown;\n}\n');
    for (const path of ["asyncapi.json", "types.ts"]) {
      const rejected = await reader.expectRejection("GET", `/apps/${app.id}/${path}?channel=none`);
      expect(rejected).toMatchObject({ status: 404 });
    }
  });

  it("are rejected if they would have more than 1,000 types", async () => {
    const call = spine.api.call;
    const many = {
      uid: "a",
      kind: "webhook",
      events: Array.from({ length: 600 }, (_, n) => ({ type: `t${n}` })),
    };
    const app = await spine.install(many);
    await call.post(`/apps/${app.id}/channels`, { ...many, uid: "b" });
    const { status, body } = await call("GET", `/apps/${app.id}/asyncapi.json`);
    expect([status, body.message]).toEqual([409, expect.stringContaining("1200 event types")]);
    expect((await call("GET", `/apps/${app.id}/asyncapi.json?channel=b`)).status).toBe(200);
  });
});

describe("the number of events of the last day", () => {
  const HOUR_MS = 3_600_000;
  const append = (topic: string, atMs: number) =>
    spine.redis.call("xadd", [topic, String(atMs), "data", "{}"]);

  it("is exact while the topic holds few events, and a minimum after 500 or after a removal", async () => {
    const app = await install();
    const [, push] = await catalog(app);
    const { topic } = push;
    const activity = async () => {
      const [, { eventsLastDay, eventsLastDayIsExact }] = await catalog(app);
      return [eventsLastDay, eventsLastDayIsExact];
    };
    const nowMs = Date.now();
    await append(topic, nowMs - 26 * HOUR_MS);
    expect(await activity()).toEqual([0, true]);
    expect((await catalog(app))[1].lastSeenAt).toBe(new Date(nowMs - 26 * HOUR_MS).toISOString());
    for (let n = 0; n < 500; n++) await append(topic, nowMs - 2 * HOUR_MS + n);
    expect(await activity()).toEqual([500, true]);
    await append(topic, nowMs - HOUR_MS);
    expect(await activity()).toEqual([500, false]);
    await spine.redis.call("xtrim", [topic, "MAXLEN", 3]);
    expect(await activity()).toEqual([3, false]);
  });

  it("counts at most 4 MiB of data of a topic that also has older events", async () => {
    const app = await install();
    const [, { topic }] = await catalog(app);
    const large = "x".repeat(1_500_000);
    const nowMs = Date.now();
    await append(topic, nowMs - 26 * HOUR_MS);
    for (let n = 0; n < 5; n++)
      await spine.redis.call("xadd", [topic, String(nowMs - 1000 + n), "data", large]);
    expect((await catalog(app))[1]).toMatchObject({ eventsLastDay: 3, eventsLastDayIsExact: false });
  });
});
