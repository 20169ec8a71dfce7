import { beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChannelKind } from "../../../src/channels/kind.ts";
import { hasAddress } from "../../../src/data/channels/address-columns.ts";
import { sealSecrets } from "../../../src/data/channels/channel-secrets.ts";
import { createStoredChannels } from "../../../src/data/channels/stored-channels.ts";
import { commonFields } from "../../../src/event/channel.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

/** A pull channel kind. Its channels have no address. */
const fetching: ChannelKind = {
  kind: "polling",
  configSchema: z.strictObject({ ...commonFields, endpoint: z.string() }),
  secretFields: [],
  addressed: false,
  profile: { roots: new Map() },
  needsSetup: () => false,
  start: async () => ({ async [Symbol.asyncDispose]() {} }),
};

const HMAC = {
  scheme: "hmac",
  algorithm: "sha256",
  encoding: "hex",
  in: "header",
  name: "x-hub-signature-256",
  prefix: "sha256=",
};

let appId: string;
const api = opened(() => createTestApi({ extraKinds: [fetching] }));
beforeAll(async () => {
  appId = await installApp();
});

/** Installs an app without channels and returns its id. */
async function installApp(): Promise<string> {
  const { id: blueprintId } = await api.call.post("/blueprints", { title: "x" });
  return (await api.call.post("/apps/install", { blueprintId })).id;
}

let made = 0;
const create = (input: object = {}) =>
  api.call.post(`/apps/${appId}/channels`, {
    uid: `c${++made}`,
    kind: "webhook",
    events: [{ type: "push" }],
    ...input,
  });

const topics = (uid: string) =>
  api.database.db.selectFrom("topics").selectAll().where("channelUid", "=", uid).orderBy("type").execute();

const stored = async (id: string) =>
  api.database.db
    .selectFrom("channels")
    .selectAll()
    .where(hasAddress(api.keyring, id))
    .executeTakeFirstOrThrow();

const live = () => createStoredChannels({ db: api.database.db, keyring: api.keyring });

describe("a channel", () => {
  it("can be created, read and listed in order of creation, and has an address only if its kind receives requests", async () => {
    const webhook = await create();
    const polling = await create({ kind: "polling", config: { endpoint: "https://api.example" } });
    expect(webhook.url).toBe(`https://hooks.example/hooks/${webhook.id}`);
    expect(polling.url).toBeNull();
    expect(await api.call.get(`/apps/${appId}/channels/${webhook.id}`)).toEqual(webhook);
    const listed = await api.call("GET", `/apps/${appId}/channels?limit=200`);
    expect(listed.body.slice(-2)).toEqual([webhook, polling]);
    expect(listed.headers.get("x-total-count")).toBe(String(listed.body.length));
  });

  it("has a uid that is unique in its app, and can change neither its uid nor its kind", async () => {
    const { uid, id } = await create();
    const again = await api.call.expectRejection("POST", `/apps/${appId}/channels`, { uid, kind: "webhook" });
    expect(again).toEqual({ status: 409, code: "conflict" });
    for (const patch of [{ uid: "other" }, { kind: "polling" }]) {
      const refusal = await api.call.expectRejection("PUT", `/apps/${appId}/channels/${id}`, patch);
      expect(refusal).toMatchObject({ status: 400, paths: Object.keys(patch) });
    }
  });

  it("never returns its secrets, and stores its secrets encrypted", async () => {
    const channel = await create({ config: { verification: HMAC, secrets: [{ value: "s3cret-one" }] } });
    const path = `/apps/${appId}/channels/${channel.id}`;
    const answers = [channel, await api.call.get(path), await api.call.put(path, { title: "t" })];
    for (const answer of answers) {
      expect(JSON.stringify(answer)).not.toContain("s3cret");
      expect(answer.config).not.toHaveProperty("secrets");
      expect(answer.state).toBe("active");
    }
    const row = await stored(channel.id);
    expect(JSON.stringify(row)).not.toContain("s3cret");
    expect(row.sealedSettings).toMatch(/^s1\./);
    expect((await live().findById(channel.id))?.channel.config).toMatchObject({
      secrets: [{ value: "s3cret-one" }],
    });
  });

  it("returns the names of its secrets, but no values", async () => {
    const named = { name: "verifyToken", value: "s3cret-two" };
    const channel = await create({ config: { verification: HMAC } });
    const path = `/apps/${appId}/channels/${channel.id}`;
    expect(channel.secretNames).toEqual([]);
    const set = await api.call.put(path, { config: { secrets: [{ value: "s3cret" }, named] } });
    expect(set.secretNames).toEqual([null, "verifyToken"]);
    expect(await api.call.get(path)).toMatchObject({ secretNames: [null, "verifyToken"] });
  });

  it("is in state needsSetup until its verification scheme has a secret, and again after that secret is removed", async () => {
    const channel = await create({ config: { verification: HMAC } });
    const path = `/apps/${appId}/channels/${channel.id}`;
    expect(channel.state).toBe("needsSetup");
    const set = await api.call.put(path, { config: { secrets: [{ value: "s3cret" }] } });
    expect(set).toMatchObject({ state: "active", config: { verification: { scheme: "hmac" } } });
    expect(await api.call.put(path, { title: "kept" })).toMatchObject({ state: "active" });
    expect(await api.call.put(path, { config: { secrets: null } })).toMatchObject({ state: "needsSetup" });
  });

  it("rejects a new secret with surrounding white space, but keeps one that is already stored", async () => {
    const path = (id: string) => `/apps/${appId}/channels/${id}`;
    const config = (value: string) => ({ config: { verification: HMAC, secrets: [{ value }] } });
    const refused = await api.call("POST", `/apps/${appId}/channels`, {
      uid: "padded",
      kind: "webhook",
      ...config("s3cret\n"),
    });
    expect(refused).toMatchObject({
      status: 400,
      body: {
        details: [{ path: "config.secrets[0].value", message: expect.stringContaining("white space") }],
      },
    });
    const channel = await create(config("s3cret"));
    const { number } = await stored(channel.id);
    await api.database.db
      .updateTable("channels")
      .set({ sealedSettings: sealSecrets(api.keyring, number, { secrets: [{ value: "old " }] }) })
      .where("number", "=", number)
      .execute();
    expect(await api.call.put(path(channel.id), { title: "kept" })).toMatchObject({ state: "active" });
    const added = { config: { secrets: [{ value: "old " }, { value: " new" }] } };
    expect(await api.call.expectRejection("PUT", path(channel.id), added)).toMatchObject({
      paths: ["config.secrets[1].value"],
    });
  });

  it("rejects encrypted secrets that were copied from another channel's database row", async () => {
    const [first, second] = [await create({ config: { secrets: [{ value: "s3cret" }] } }), await create()];
    const { sealedSettings } = await stored(first.id);
    await api.database.db
      .updateTable("channels")
      .set({ sealedSettings })
      .where(hasAddress(api.keyring, second.id))
      .execute();
    await expect(live().findById(second.id)).rejects.toThrow("another row");
  });

  it("is changed by a merge patch, which also updates its topics and the change feed", async () => {
    const channel = await create({ events: [{ type: "a" }, { type: "b" }] });
    const path = `/apps/${appId}/channels/${channel.id}`;
    const body = await api.call.put(path, {
      config: { dedupe: { windowSeconds: 60 }, retention: { maxEntries: 5 } },
      events: [{ type: "b" }, { type: "c" }],
    });
    expect(body.config.dedupe).toEqual({ windowSeconds: 60, by: "id", onConflict: "quarantine" });
    const state = (await topics(channel.uid)).map(({ type, maxEntries, retiredAt }) => [
      type,
      maxEntries,
      retiredAt !== null,
    ]);
    expect(state).toEqual([
      ["a", 100_000, true],
      ["b", 5, false],
      ["c", 5, false],
    ]);
    await api.call.put(path, { events: [{ type: "a" }] });
    expect((await topics(channel.uid)).map(({ retiredAt }) => retiredAt !== null)).toEqual([
      false,
      true,
      true,
    ]);
    const { number } = await stored(channel.id);
    const feedRows = await api.database.db
      .selectFrom("changes")
      .select("id")
      .where("kind", "=", "channel")
      .where("key", "=", String(number))
      .execute();
    expect(feedRows).toHaveLength(3);
  });

  it("keeps all changes if several requests change different fields concurrently", async () => {
    const { id } = await create();
    const path = `/apps/${appId}/channels/${id}`;
    const patches = [
      { title: "t" },
      { config: { onInvalid: "reject" } },
      { config: { dedupe: { by: "content" } } },
    ];
    await Promise.all(patches.map((patch) => api.call.put(path, patch)));
    expect(await api.call.get(path)).toMatchObject({
      title: "t",
      config: { onInvalid: "reject", dedupe: { by: "content" } },
    });
  });

  it("rejects a change that would drop settings stored by a newer version of Inlet", async () => {
    const { db } = api.database;
    const { id, config, events } = await create();
    const path = `/apps/${appId}/channels/${id}`;
    const newer = [
      { config: { ...config, younger: 1 }, events },
      { config: { ...config, dedupe: { ...config.dedupe, younger: 1 } }, events },
      { config, events: [{ ...events[0], younger: 1 }] },
    ];
    for (const content of newer) {
      await db
        .updateTable("channels")
        .set({ config: JSON.stringify(content.config), events: JSON.stringify(content.events) })
        .where(hasAddress(api.keyring, id))
        .execute();
      const refused = await api.call("PUT", path, { title: "t" });
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([
        400,
        expect.stringContaining("younger"),
      ]);
      expect(await stored(id)).toMatchObject({ title: null, ...content });
    }
    const without = await api.call("PUT", path, { events });
    expect(without).toMatchObject({ status: 200 });
  });

  it("stays paused when its settings are changed", async () => {
    const { id } = await create();
    await api.database.db
      .updateTable("channels")
      .set({ state: "paused" })
      .where(hasAddress(api.keyring, id))
      .execute();
    const changed = await api.call.put(`/apps/${appId}/channels/${id}`, { title: "t" });
    expect(changed).toMatchObject({ title: "t", state: "paused" });
  });

  it.each([
    ["config.limits.maxDepth", { config: { limits: { maxDepth: 0 } } }],
    ["config.verification", { config: { verification: { scheme: "trust" } } }],
    ["events[0].typePath", { events: [{ type: "a", typePath: "nonsense" }] }],
  ])("is rejected if %s is invalid", async (path, input) => {
    const { id } = await create();
    for (const [method, at, body] of [
      ["POST", `/apps/${appId}/channels`, { uid: "refused", kind: "webhook", ...input }],
      ["PUT", `/apps/${appId}/channels/${id}`, input],
    ] as const) {
      const { status, paths = [] } = await api.call.expectRejection(method, at, body);
      expect(status).toBe(400);
      for (const one of paths) expect(one).toContain(path);
      expect(paths.length).toBeGreaterThan(0);
    }
  });

  it("is deleted with its secrets, and a new channel with the same uid has a new id but uses the same topics", async () => {
    const first = await create({ uid: "again", config: { secrets: [{ value: "s3cret" }] } });
    const path = `/apps/${appId}/channels/${first.id}`;
    const { number } = await stored(first.id);
    expect(await api.call.delete(path)).toEqual({ id: first.id });
    for (const method of ["GET", "DELETE"]) expect((await api.call(method, path)).status).toBe(404);
    expect(await live().findById(first.id)).toBeUndefined();
    expect((await topics("again"))[0]?.retiredAt).toBeInstanceOf(Date);
    const second = await create({ uid: "again" });
    const successor = await stored(second.id);
    expect(successor.number).toBeGreaterThan(number);
    expect(second.id).not.toBe(first.id);
    expect(await topics("again")).toMatchObject([{ channelNumber: successor.number, retiredAt: null }]);
  });

  it("can be addressed by its uid wherever its id is allowed, and the id wins if another channel has that uid", async () => {
    const { id } = await create({ uid: "named" });
    const at = `/apps/${appId}/channels`;
    await create({ uid: id, title: "looks like another's id" });
    expect(await api.call.get(`${at}/named`)).toMatchObject({ id });
    expect(await api.call.get(`${at}/${id}`)).toMatchObject({ uid: "named" });
    expect(await api.call.put(`${at}/named`, { title: "t" })).toMatchObject({ id, title: "t" });
    expect(await api.call.post(`${at}/named/pause`)).toMatchObject({ id, state: "paused" });
    expect(await api.call.post(`${at}/named/resume`)).toMatchObject({ id, state: "active" });
    const rotated = await api.call.post(`${at}/named/rotate`);
    expect(rotated).toMatchObject({ uid: "named", id: expect.not.stringMatching(id) });
    for (const [name, status] of [
      ["named", 200],
      ["name", 404],
      ["na.me", 404],
    ] as const) {
      expect([name, (await api.call("GET", `${at}/${name}`)).status]).toEqual([name, status]);
    }
    expect(await api.call.delete(`${at}/named`)).toEqual({ id: rotated.id });
  });

  it("is not found under another app", async () => {
    const { id } = await create();
    const other = await installApp();
    for (const method of ["GET", "PUT", "DELETE"]) {
      const body = method === "PUT" ? {} : undefined;
      expect((await api.call(method, `/apps/${other}/channels/${id}`, body)).status).toBe(404);
    }
    await api.call.get(`/apps/${appId}/channels/${id}`);
  });
});
