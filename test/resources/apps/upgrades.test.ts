import { beforeEach, describe, expect, it } from "vitest";
import { createStoredChannels } from "../../../src/data/channels/stored-channels.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

const api = opened(createTestApi);

const channel = (uid: string, ...types: string[]) => ({
  uid,
  kind: "webhook",
  events: types.map((type) => ({ type })),
});

let blueprintId: string;
// biome-ignore lint/suspicious/noExplicitAny: a response of the API
let app: any;
beforeEach(async () => {
  const channels = [channel("stays", "a"), channel("changes", "b"), channel("goes", "c")];
  blueprintId = (await api.call.post("/blueprints", { title: "x", channels })).id;
  app = await api.call.post("/apps/install", { blueprintId });
});

const upgrade = (body: object = {}) => api.call.post(`/apps/${app.id}/upgrade`, body);
const change = (channels: readonly object[]) => api.call.put(`/blueprints/${blueprintId}`, { channels });
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
  it("updates channels to match the blueprint, adds new ones, and keeps channels that the blueprint no longer contains", async () => {
    await change(next);
    const body = await upgrade();
    expect(body).toMatchObject({
      id: app.id,
      added: ["comes"],
      updated: ["changes"],
      kept: ["goes"],
      removed: [],
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
    // The upgrade does not write unchanged channels, so `updatedAt` is the same.
    expect(body.channels[0]).toEqual(app.channels[0]);
    expect(await liveTopics()).toEqual(["a", "b", "b2", "c", "d"]);
    expect(await upgrade()).toMatchObject({ added: [], updated: [], kept: ["goes"], removed: [] });
  });

  it("removes channels that the blueprint no longer contains on request, but never channels that were added manually", async () => {
    const added = await api.call.post(`/apps/${app.id}/channels`, channel("mine", "e"));
    await change(next);
    expect(await upgrade({ removeMissing: true })).toMatchObject({ kept: ["mine"], removed: ["goes"] });
    expect(await liveTopics()).toEqual(["a", "b", "b2", "d", "e"]);
    expect((await api.call("GET", `/apps/${app.id}/channels/${idOf("goes")}`)).status).toBe(404);
    expect((await api.call("GET", `/apps/${app.id}/channels/${added.id}`)).status).toBe(200);
    const removal = await api.database.db.selectFrom("removals").select("removal").execute();
    expect(JSON.stringify(removal)).toContain('"uid":"goes"');
  });

  it("keeps the verification settings of a channel if the blueprint has none", async () => {
    const path = `/apps/${app.id}/channels/${idOf("changes")}`;
    const config = { verification: { scheme: "hmac", name: "x-signature" }, secrets: [{ value: "s3cret" }] };
    const { verification } = (await api.call.put(path, { config })).config;
    expect(verification).toMatchObject({ scheme: "hmac" });
    await change(next);
    expect((await upgrade()).updated).toEqual(["changes"]);
    expect(await api.call.get(path)).toMatchObject({
      title: "Changed",
      state: "active",
      config: { verification },
    });
    expect((await upgrade()).updated).toEqual([]);
  });

  it.each([
    ["a preset without verification", { preset: "docker-hub" }],
    ["a verification in shadow mode", { verification: { scheme: "hmac", name: "x-other" }, shadow: true }],
  ])("keeps the verification settings of a channel if the blueprint has %s", async (_, opening) => {
    const path = `/apps/${app.id}/channels/${idOf("stays")}`;
    const config = { verification: { scheme: "hmac", name: "x-signature" }, secrets: [{ value: "s3cret" }] };
    const before = await api.call.put(path, { config });
    await change([{ ...channel("stays", "a"), config: opening }]);
    await upgrade();
    const { verification, preset, shadow } = (await api.call.get(path)).config;
    expect({ verification, preset, shadow }).toEqual({
      verification: before.config.verification,
      preset: undefined,
      shadow: false,
    });
  });

  it("keeps the secrets and the paused state of a channel, and reverts other manual changes", async () => {
    const verification = { scheme: "hmac", name: "x-signature" };
    await change([{ ...channel("stays", "a"), config: { verification } }]);
    expect((await upgrade()).channels[0]).toMatchObject({ state: "needsSetup" });
    const path = `/apps/${app.id}/channels/${idOf("stays")}`;
    await api.call.put(path, { title: "by hand", config: { secrets: [{ value: "s3cret" }] } });
    await api.call.post(`${path}/pause`);
    await change([{ ...channel("stays", "a"), config: { verification: { ...verification, prefix: "v=" } } }]);
    const [stays] = (await upgrade()).channels;
    expect(stays).toMatchObject({ title: null, state: "paused", config: { verification: { prefix: "v=" } } });
    const live = createStoredChannels({ db: api.database.db, keyring: api.keyring });
    const found = await live.findById(idOf("stays"));
    expect(found?.channel.config).toMatchObject({ secrets: [{ value: "s3cret" }] });
    expect(await api.call.post(`${path}/resume`)).toMatchObject({ state: "active" });
  });

  it("is rejected with 409 and changes nothing if one channel conflicts or the blueprint was deleted", async () => {
    await api.database.db
      .updateTable("blueprints")
      .set({ channels: JSON.stringify([channel("comes", "d"), { ...channel("stays"), kind: "sse" }]) })
      .where("id", "=", blueprintId)
      .execute();
    const path = `/apps/${app.id}/upgrade`;
    expect(await api.call.expectRejection("POST", path)).toEqual({
      status: 409,
      code: "conflict",
      paths: ["channels[1].kind"],
    });
    expect(await liveTopics()).toEqual(["a", "b", "c"]);
    await api.call.delete(`/blueprints/${blueprintId}`);
    expect(await api.call.expectRejection("POST", path)).toMatchObject({ status: 409 });
  });

  it("adds a channel once if three upgrades run concurrently", async () => {
    await change(next);
    const answers = await Promise.all([upgrade(), upgrade(), upgrade()]);
    expect(answers.filter(({ added }) => added.length > 0)).toHaveLength(1);
    expect(answers.map(({ channels }) => channels.length)).toEqual([4, 4, 4]);
  });

  it("records each changed channel in the audit log", async () => {
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
        action: "update",
        entity: "channel",
        entityId: `${app.id}/changes`,
        fields: ["config.dedupe", "events", "title"],
      },
      { action: "create", entity: "channel", entityId: `${app.id}/comes`, fields: [] },
      { action: "delete", entity: "channel", entityId: `${app.id}/goes`, fields: [] },
    ]);
  });
});
