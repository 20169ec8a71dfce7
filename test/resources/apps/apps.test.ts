import { describe, expect, it } from "vitest";
import { createChannelIdCheck } from "../../../src/lib/secrets/channel-id.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

const channel = (uid: string, ...types: string[]) => ({
  uid,
  kind: "webhook",
  events: types.map((type) => ({ type })),
});

async function install(...channels: object[]) {
  const { id } = await api.call.post("/blueprints", { title: "GitHub", description: "d", channels });
  return api.call.post("/apps/install", { blueprintId: id });
}

const topicRows = (appId: string) =>
  api.database.db.selectFrom("topics").selectAll().where("appId", "=", appId).orderBy("topic").execute();

const changes = async () =>
  (await api.database.db.selectFrom("changes").select(["kind", "key"]).orderBy("id").execute()).map(
    ({ kind, key }) => `${kind} ${key}`,
  );

const removals = async () =>
  (await api.database.db.selectFrom("removals").select("removal").orderBy("id").execute()).map(
    // biome-ignore lint/suspicious/noExplicitAny: tests look into what is stored
    ({ removal }) => removal as any,
  );

describe("installing a blueprint with settings", () => {
  const hmac = { scheme: "hmac", algorithm: "sha256", encoding: "hex", in: "header", name: "x-signature" };
  const signed = { ...channel("main", "push"), config: { verification: hmac } };
  const fed = {
    uid: "feed",
    kind: "sse",
    config: { url: "https://api.example.com/events", connection: "required" },
    events: [{ type: "tick" }],
  };
  const blueprintOf = async (...channels: object[]) =>
    (await api.call.post("/blueprints", { title: "GitHub", channels })).id;
  const connect = async (origin: string) =>
    (
      await api.call.post("/connections", {
        name: "c",
        kind: "apiKey",
        config: { in: "header", name: "x-key", value: "k" },
        allowedOrigins: [origin],
      })
    ).id;

  it("sets the app's uid and title, and secrets and connections of its channels, which are then ready", async () => {
    const blueprintId = await blueprintOf(signed, fed);
    expect((await api.call.post("/apps/install", { blueprintId })).channels).toMatchObject([
      { uid: "main", state: "needsSetup" },
      { uid: "feed", state: "needsConnection", connectionId: null },
    ]);
    const connectionId = await connect("https://api.example.com");
    const channels = { main: { secrets: [{ value: "s3cret" }] }, feed: { connectionId } };
    const app = await api.call.post("/apps/install", { blueprintId, uid: "shop", title: "Shop", channels });
    expect(app).toMatchObject({ uid: "shop", title: "Shop" });
    expect(app.channels).toMatchObject([
      { uid: "main", state: "active" },
      { uid: "feed", state: "idle", connectionId },
    ]);
    expect(JSON.stringify(app)).not.toContain("s3cret");
    expect(JSON.stringify(await api.call.get("/audit"))).not.toContain("s3cret");
  });

  it("names each invalid setting, and creates nothing", async () => {
    const blueprintId = await blueprintOf(signed, fed);
    const before = await api.call.get("/apps");
    const reject = (body: object) => api.call("POST", "/apps/install", { blueprintId, ...body });
    const details = async (body: object) => (await reject(body)).body.details;
    expect(await details({ channels: { mian: {} } })).toEqual([
      {
        path: "channels.mian",
        message: "is not a channel of the blueprint (it has main, feed); did you mean main?",
      },
    ]);
    expect(await details({ channels: { main: { secrets: [{ value: "" }], extra: 1 } } })).toMatchObject([
      { path: "channels.main.secrets[0].value" },
      { path: "channels.main.extra", message: "is not a known field" },
    ]);
    expect(await details({ channels: { main: { secrets: [{ value: " copied" }] } } })).toMatchObject([
      { path: "channels.main.secrets[0].value", message: expect.stringContaining("white space") },
    ]);
    expect(await details({ channels: { feed: { secrets: [{ value: "s" }] } } })).toMatchObject([
      { path: "channels.feed.secrets", message: expect.stringContaining("connectionId") },
    ]);
    const elsewhere = await connect("https://other.example.com");
    expect(await details({ channels: { feed: { connectionId: elsewhere } } })).toMatchObject([
      { path: "channels.feed.connectionId", message: expect.stringContaining("https://api.example.com") },
    ]);
    expect(await details({ channels: { main: { connectionId: elsewhere } } })).toMatchObject([
      { path: "channels.main.connectionId" },
    ]);
    expect(await details({ uid: "a b" })).toMatchObject([{ path: "uid" }]);
    expect(await details({ title: "" })).toMatchObject([{ path: "title" }]);
    expect((await reject({ channels: { feed: { connectionId: "con_x" } } })).status).toBe(404);
    expect(await api.call.get("/apps")).toEqual(before);
  });
});

describe("installing a blueprint", () => {
  it("creates the app with its channels, and gives each channel an unguessable address that the gateway can verify", async () => {
    const app = await install(channel("main", "push"), channel("second"));
    const { channels, ...entity } = app;
    expect(entity).toEqual({
      id: expect.stringMatching(/^app_/),
      isSystem: false,
      uid: expect.any(String),
      title: "GitHub",
      description: "d",
      blueprintId: expect.stringMatching(/^bp_/),
      artifactId: null,
      organizationId: expect.stringMatching(/^org_/),
      projectId: null,
      spaceId: expect.stringMatching(/^spc_/),
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect(channels.map(({ uid }: { uid: string }) => uid)).toEqual(["main", "second"]);
    for (const one of channels) {
      expect(createChannelIdCheck(api.keyring.channelIdKey)(one.id)).toBe(true);
      expect(one).toMatchObject({ appId: app.id, state: "active", connectionId: null });
      expect(one.url).toBe(`https://hooks.example/hooks/${one.id}`);
    }
    expect(await api.call.get(`/apps/${app.id}`)).toEqual(entity);
  });

  it("creates the topics of its channels, and adds the new app and its channels to the change feed", async () => {
    const before = (await changes()).length;
    const app = await install(channel("main", "push", "a b"));
    expect((await topicRows(app.id)).map(({ topic }) => topic)).toEqual([
      `events.${app.organizationId}.apps.app.event_received.${app.id}.main.a%20b`,
      `events.${app.organizationId}.apps.app.event_received.${app.id}.main.push`,
    ]);
    expect((await changes()).slice(before)).toEqual([
      `app ${app.id}`,
      expect.stringMatching(/^channel \d+$/),
    ]);
  });

  it("copies the content of the blueprint, so that later changes of the blueprint do not affect the app", async () => {
    const app = await install(channel("main", "push"));
    await api.call.put(`/blueprints/${app.blueprintId}`, { title: "Changed", channels: [] });
    expect(await api.call.get(`/apps/${app.id}`)).toMatchObject({ title: "GitHub" });
    expect(await api.call.get(`/apps/${app.id}/channels`)).toHaveLength(1);
  });

  it("requires either a blueprintId or an artifactId, and rejects both together", async () => {
    const paths = ["artifactId", "blueprintId"];
    for (const input of [{}, { blueprintId: "bp_x", artifactId: "art_x" }])
      expect(await api.call.expectRejection("POST", "/apps/install", input)).toMatchObject({
        status: 400,
        paths,
      });
    expect((await api.call("POST", "/apps/install")).status).toBe(400);
  });

  it("accepts null for optional fields, with the same effect as an absent field", async () => {
    const { blueprintId, spaceId } = await install();
    const input = { blueprintId, artifactId: null, spaceId: null };
    expect(await api.call.post("/apps/install", input)).toMatchObject({ blueprintId, spaceId });
  });

  it("requires a spaceId when the API key has no space", async () => {
    const { blueprintId, spaceId } = await install();
    const key = await api.keyWith("*");
    await api.database.db
      .updateTable("apiKeys")
      .set({ spaceId: null })
      .where("prefix", "=", key.slice(0, 11))
      .execute();
    const refusal = await api.as(key).expectRejection("POST", "/apps/install", { blueprintId });
    expect(refusal).toMatchObject({ status: 400, paths: ["spaceId"] });
    expect(await api.as(key).post("/apps/install", { blueprintId, spaceId })).toMatchObject({ spaceId });
  });
});

describe("an app", () => {
  it("can be listed and changed, but not moved to another space", async () => {
    const app = await install();
    const changed = await api.call.put(`/apps/${app.id}`, { title: "Mine", projectId: "p-1" });
    expect(changed).toMatchObject({ id: app.id, title: "Mine", description: "d", projectId: "p-1" });
    expect(await api.call.get("/apps?limit=200")).toContainEqual(changed);
    expect((await api.call("PUT", `/apps/${app.id}`, { spaceId: "spc_1" })).status).toBe(400);
  });

  it("is deleted with its channels and subscriptions, keeps its topics, and has the cleanup of its Redis keys scheduled", async () => {
    const app = await install(channel("main", "push"), channel("second", "pull"));
    await api.database.db
      .insertInto("subscriptions")
      .values({
        id: "sub_1",
        organizationId: app.organizationId,
        appId: app.id,
        eventUid: "*",
        connectionId: null,
        state: "active",
        startAt: "now",
        startMs: 0,
        handler: null,
        createdAt: new Date(),
        updatedAt: new Date(),
      })
      .execute();
    const deletions = api.deletions();
    expect(await api.call.delete(`/apps/${app.id}`)).toEqual({ id: app.id });
    expect(api.deletions()).toBe(deletions + 1);
    expect((await api.call("GET", `/apps/${app.id}`)).status).toBe(404);
    const { db } = api.database;
    for (const table of ["channels", "subscriptions"] as const) {
      expect(await db.selectFrom(table).selectAll().where("appId", "=", app.id).execute()).toEqual([]);
    }
    const topics = await topicRows(app.id);
    expect(topics.map(({ retiredAt }) => retiredAt)).toEqual([expect.any(Date), expect.any(Date)]);
    expect((await removals()).slice(-3)).toEqual([
      { kind: "subscription", id: "sub_1", organizationId: app.organizationId },
      expect.objectContaining({
        kind: "channel",
        topics: [expect.stringContaining(".main.push")],
        purge: false,
      }),
      expect.objectContaining({
        kind: "channel",
        topics: [expect.stringContaining(".second.pull")],
        purge: false,
      }),
    ]);
    expect(await changes()).toEqual(expect.arrayContaining([`app ${app.id}`, "subscription sub_1"]));
  });

  it("is deleted with its topics and events if purge is true", async () => {
    const app = await install(channel("main", "push"));
    expect((await api.call("DELETE", `/apps/${app.id}?purge=yes`)).status).toBe(400);
    await api.call.delete(`/apps/${app.id}?purge=true`);
    expect((await removals()).at(-1)).toMatchObject({ kind: "channel", purge: true });
  });
});

describe("the list of apps with `search`", () => {
  it("contains the apps whose uid or title has the text in any case, without patterns and without other organizations", async () => {
    const { id: blueprintId } = await api.call.post("/blueprints", { title: "Searched", channels: [] });
    for (const [uid, title] of [
      ["acme-eu", "Événements 100%"],
      ["acme-us", "Orders_1"],
      ["other", "Acme orders"],
    ])
      await api.call.post("/apps/install", { blueprintId, uid, title });
    const search = async (text: string, call = api.call) => {
      const answer = await call("GET", `/apps?search=${encodeURIComponent(text)}`);
      const uids = answer.body.map(({ uid }: { uid: string }) => uid);
      expect(answer.headers.get("x-total-count")).toBe(String(uids.length));
      return uids;
    };
    expect(await search("ACME")).toEqual(["acme-eu", "acme-us", "other"]);
    expect(await search("orders")).toEqual(["acme-us", "other"]);
    expect(await search("événements")).toEqual(["acme-eu"]);
    expect(await search("%")).toEqual(["acme-eu"]);
    expect(await search("s_1")).toEqual(["acme-us"]);
    expect(await search("euÉ")).toEqual([]);
    expect(await search("no such app")).toEqual([]);
    expect((await api.call("GET", "/apps?search=a%00b")).status).toBe(400);
    const { apiKey } = await api.call.post("/organizations", { name: "elsewhere" });
    expect(await search("acme", api.as(apiKey.key))).toEqual([]);
    expect(await api.call.expectRejection("GET", "/apps?search=")).toMatchObject({
      status: 400,
      paths: ["search"],
    });
  });
});
