import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { verifyChannelId } from "../../src/lib/channel-id.ts";
import { createTestApi, type TestApi } from "../support/api.ts";

let api: TestApi;
beforeAll(async () => {
  api = await createTestApi();
});
afterAll(() => api[Symbol.asyncDispose]());

const channel = (uid: string, ...types: string[]) => ({
  uid,
  kind: "webhook",
  events: types.map((type) => ({ type })),
});

async function install(...channels: object[]) {
  const blueprint = await api.call("POST", "/blueprints", { title: "GitHub", description: "d", channels });
  const installed = await api.call("POST", "/apps/install", { blueprintId: blueprint.body.id });
  expect(installed.status).toBe(200);
  return installed.body;
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

describe("an install", () => {
  it("makes the app and its channels, each with an address that is true and secret", async () => {
    const app = await install(channel("main", "push"), channel("second"));
    const { channels, ...entity } = app;
    expect(entity).toEqual({
      id: expect.stringMatching(/^app_/),
      uid: expect.any(String),
      title: "GitHub",
      description: "d",
      blueprintId: expect.stringMatching(/^bp_/),
      organizationId: expect.stringMatching(/^org_/),
      projectId: null,
      spaceId: expect.stringMatching(/^spc_/),
      createdAt: expect.any(String),
      updatedAt: expect.any(String),
    });
    expect(channels.map(({ uid }: { uid: string }) => uid)).toEqual(["main", "second"]);
    for (const one of channels) {
      expect(verifyChannelId(api.keyring.channelIdKey, one.id)).toBe(true);
      expect(one).toMatchObject({ appId: app.id, state: "active", connectionId: null });
      expect(one.url).toBe(`https://hooks.example/hooks/${one.id}`);
    }
    expect((await api.call("GET", `/apps/${app.id}`)).body).toEqual(entity);
  });

  it("makes the topics and tells the change in the same transaction", async () => {
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

  it("copies the blueprint: what is changed there later does not reach it", async () => {
    const app = await install(channel("main", "push"));
    await api.call("PUT", `/blueprints/${app.blueprintId}`, { title: "Changed", channels: [] });
    expect((await api.call("GET", `/apps/${app.id}`)).body.title).toBe("GitHub");
    expect((await api.call("GET", `/apps/${app.id}/channels`)).body).toHaveLength(1);
  });

  it("wants exactly one of the two ids", async () => {
    for (const input of [{}, { blueprintId: "bp_x", artifactId: "art_x" }]) {
      const { status, body } = await api.call("POST", "/apps/install", input);
      expect([status, body.details.map(({ path }: { path: string }) => path)]).toEqual([
        400,
        ["artifactId", "blueprintId"],
      ]);
    }
    expect((await api.call("POST", "/apps/install")).status).toBe(400);
  });

  it("answers 404 for what is not there or another organization's", async () => {
    const { blueprintId, spaceId } = await install();
    const stranger = api.as(await api.strangerKey());
    const theirs = await stranger("POST", "/blueprints", { title: "theirs" });
    const space = (await stranger("POST", "/apps/install", { blueprintId: theirs.body.id })).body.spaceId;
    for (const input of [
      { artifactId: "art_1" },
      { blueprintId: "bp_1" },
      { blueprintId: theirs.body.id },
      { blueprintId, spaceId: "spc_1" },
      { blueprintId, spaceId: space },
    ]) {
      expect((await api.call("POST", "/apps/install", input)).body.code).toBe("not_found");
    }
    expect((await api.call("POST", "/apps/install", { blueprintId, spaceId })).status).toBe(200);
  });

  it("needs a space when the key has none", async () => {
    const { blueprintId, spaceId } = await install();
    const key = await api.keyWith("*");
    await api.database.db
      .updateTable("apiKeys")
      .set({ spaceId: null })
      .where("prefix", "=", key.slice(0, 11))
      .execute();
    const refused = await api.as(key)("POST", "/apps/install", { blueprintId });
    expect([refused.status, refused.body.details[0].path]).toEqual([400, "spaceId"]);
    expect((await api.as(key)("POST", "/apps/install", { blueprintId, spaceId })).status).toBe(200);
  });
});

describe("an app", () => {
  it("is listed and changed by its organization", async () => {
    const app = await install();
    const changed = await api.call("PUT", `/apps/${app.id}`, { title: "Mine", projectId: "p-1" });
    expect(changed.body).toMatchObject({ id: app.id, title: "Mine", description: "d", projectId: "p-1" });
    const listed = await api.call("GET", "/apps?limit=200");
    expect(listed.body.find(({ id }: { id: string }) => id === app.id)).toEqual(changed.body);
    expect((await api.call("PUT", `/apps/${app.id}`, { spaceId: "spc_1" })).status).toBe(400);
  });

  it("goes with its channels and subscriptions; topics stay, and what to clear away is noted", async () => {
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
    expect((await api.call("DELETE", `/apps/${app.id}`)).body).toEqual({ id: app.id });
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

  it("takes its topics along when asked to", async () => {
    const app = await install(channel("main", "push"));
    expect((await api.call("DELETE", `/apps/${app.id}?purge=yes`)).status).toBe(400);
    expect((await api.call("DELETE", `/apps/${app.id}?purge=true`)).status).toBe(200);
    expect((await removals()).at(-1)).toMatchObject({ kind: "channel", purge: true });
  });
});
