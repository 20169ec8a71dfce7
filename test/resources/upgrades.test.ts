import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { createLiveChannels } from "../../src/data/live-channels.ts";
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

let blueprintId: string;
// biome-ignore lint/suspicious/noExplicitAny: an answer of the API
let app: any;
beforeEach(async () => {
  const channels = [channel("stays", "a"), channel("changes", "b"), channel("goes", "c")];
  blueprintId = (await api.call("POST", "/blueprints", { title: "x", channels })).body.id;
  app = (await api.call("POST", "/apps/install", { blueprintId })).body;
});

const upgrade = (body: object = {}) => api.call("POST", `/apps/${app.id}/upgrade`, body);
const change = (channels: readonly object[]) => api.call("PUT", `/blueprints/${blueprintId}`, { channels });
const idOf = (uid: string) => app.channels.find((one: { uid: string }) => one.uid === uid).id;
const next = [
  channel("stays", "a"),
  { ...channel("changes", "b", "b2"), title: "Changed", config: { dedupe: { windowSeconds: 60 } } },
  channel("comes", "d"),
];

async function liveTopics() {
  const rows = await api.database.db
    .selectFrom("topics")
    .select("type")
    .where("appId", "=", app.id)
    .where("retiredAt", "is", null)
    .orderBy("type")
    .execute();
  return rows.map(({ type }) => type);
}

describe("an upgrade", () => {
  it("changes what the blueprint changed, adds what is new, and keeps what it no longer has", async () => {
    await change(next);
    const { status, body } = await upgrade();
    expect(status).toBe(200);
    expect(body).toMatchObject({
      ...{ id: app.id, added: ["comes"], updated: ["changes"], kept: ["goes"], removed: [] },
    });
    expect(body.channels.map((one: { uid: string }) => one.uid)).toEqual([
      ...["stays", "changes", "goes", "comes"],
    ]);
    for (const uid of ["stays", "changes", "goes"]) {
      expect(body.channels).toContainEqual(expect.objectContaining({ uid, id: idOf(uid) }));
    }
    expect(body.channels[1]).toMatchObject({
      title: "Changed",
      config: { dedupe: { windowSeconds: 60, by: "id" } },
      events: [{ type: "b" }, { type: "b2" }],
    });
    // What did not change was not written.
    expect(body.channels[0]).toEqual(app.channels[0]);
    expect(await liveTopics()).toEqual(["a", "b", "b2", "c", "d"]);
    expect((await upgrade()).body).toMatchObject({ added: [], updated: [], kept: ["goes"], removed: [] });
  });

  it("removes on request what came from the blueprint, never what was added by hand", async () => {
    const added = await api.call("POST", `/apps/${app.id}/channels`, channel("mine", "e"));
    await change(next);
    const { body } = await upgrade({ removeMissing: true });
    expect(body).toMatchObject({ kept: ["mine"], removed: ["goes"] });
    expect(await liveTopics()).toEqual(["a", "b", "b2", "d", "e"]);
    expect((await api.call("GET", `/apps/${app.id}/channels/${idOf("goes")}`)).status).toBe(404);
    expect((await api.call("GET", `/apps/${app.id}/channels/${added.body.id}`)).status).toBe(200);
    const removal = await api.database.db.selectFrom("removals").select("removal").execute();
    expect(JSON.stringify(removal)).toContain('"uid":"goes"');
  });

  it("does not open a channel that verifies its senders, where the blueprint says nothing of it", async () => {
    const path = `/apps/${app.id}/channels/${idOf("changes")}`;
    const config = { verification: { scheme: "hmac", name: "x-signature" }, secrets: [{ value: "s3cret" }] };
    const { verification } = (await api.call("PUT", path, { config })).body.config;
    expect(verification).toMatchObject({ scheme: "hmac" });
    await change(next);
    expect((await upgrade()).body.updated).toEqual(["changes"]);
    expect((await api.call("GET", path)).body).toMatchObject({
      ...{ title: "Changed", state: "active", config: { verification } },
    });
    expect((await upgrade()).body.updated).toEqual([]);
  });

  it.each([
    ["a preset that verifies nobody", { preset: "docker-hub" }],
    ["settings that are only tried out", { verification: { scheme: "hmac", name: "x-other" }, shadow: true }],
  ])("does not open such a channel by %s", async (_, opening) => {
    const path = `/apps/${app.id}/channels/${idOf("stays")}`;
    const config = { verification: { scheme: "hmac", name: "x-signature" }, secrets: [{ value: "s3cret" }] };
    const { body: before } = await api.call("PUT", path, { config });
    await change([{ ...channel("stays", "a"), config: opening }]);
    expect((await upgrade()).status).toBe(200);
    const { verification, preset, shadow } = (await api.call("GET", path)).body.config;
    expect({ verification, preset, shadow }).toEqual({
      ...{ verification: before.config.verification, preset: undefined, shadow: false },
    });
  });

  it("keeps the secrets of a channel, its pause, and undoes what was changed by hand", async () => {
    const verification = { scheme: "hmac", name: "x-signature" };
    await change([{ ...channel("stays", "a"), config: { verification } }]);
    expect((await upgrade()).body.channels[0]).toMatchObject({ state: "needsSetup" });
    const path = `/apps/${app.id}/channels/${idOf("stays")}`;
    await api.call("PUT", path, { title: "by hand", config: { secrets: [{ value: "s3cret" }] } });
    await api.call("POST", `${path}/pause`);
    await change([{ ...channel("stays", "a"), config: { verification: { ...verification, prefix: "v=" } } }]);
    const [stays] = (await upgrade()).body.channels;
    expect(stays).toMatchObject({ title: null, state: "paused", config: { verification: { prefix: "v=" } } });
    const live = createLiveChannels({ db: api.database.db, keyring: api.keyring });
    const found = await live.findById(idOf("stays"));
    expect(found?.channel.settings).toMatchObject({ secrets: [{ value: "s3cret" }] });
    expect((await api.call("POST", `${path}/resume`)).body).toMatchObject({ state: "active" });
  });

  it("is refused whole where it cannot be: 409, with what does not fit", async () => {
    await api.database.db
      .updateTable("blueprints")
      .set({ channels: JSON.stringify([channel("comes", "d"), { ...channel("stays"), kind: "sse" }]) })
      .where("id", "=", blueprintId)
      .execute();
    const { status, body } = await upgrade();
    expect([status, body.code]).toEqual([409, "conflict"]);
    expect(body.details).toMatchObject([{ path: "channels[1].kind" }]);
    expect(await liveTopics()).toEqual(["a", "b", "c"]);
    await api.call("DELETE", `/blueprints/${blueprintId}`);
    expect((await upgrade()).status).toBe(409);
  });

  it("makes one of two at once, or both one after the other, never a channel twice", async () => {
    await change(next);
    const answers = await Promise.all([upgrade(), upgrade(), upgrade()]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(answers.filter(({ body }) => body.added.length > 0)).toHaveLength(1);
  });

  it("is noted with what it did to each channel, and is for the app's organization alone", async () => {
    await change(next);
    await api.database.db.deleteFrom("audit").execute();
    await upgrade({ removeMissing: true });
    const notes = await api.database.db
      .selectFrom("audit")
      .select(["action", "entity", "entityId", "fields"])
      .where("entityId", "like", `${app.id}%`)
      .orderBy("entityId")
      .execute();
    expect(notes).toEqual([
      { action: "upgrade", entity: "app", entityId: app.id, fields: [] },
      {
        ...{ action: "update", entity: "channel", entityId: `${app.id}/changes` },
        fields: ["config.dedupe", "events", "title"],
      },
      { action: "create", entity: "channel", entityId: `${app.id}/comes`, fields: [] },
      { action: "delete", entity: "channel", entityId: `${app.id}/goes`, fields: [] },
    ]);
    const stranger = api.as(await api.strangerKey());
    expect((await stranger("POST", `/apps/${app.id}/upgrade`)).status).toBe(404);
    expect((await upgrade({ remove: true })).status).toBe(400);
  });
});
