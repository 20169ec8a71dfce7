import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChannelKind } from "../../src/channels/kind.ts";
import { createLiveChannels } from "../../src/data/live-channels.ts";
import { commonSettings } from "../../src/event/channel.ts";
import { createTestApi, type TestApi } from "../support/api.ts";

/** A kind that fetches: its channels have no address. */
const fetching: ChannelKind = {
  kind: "polling",
  settings: z.strictObject({ ...commonSettings, endpoint: z.string() }),
  secretSettings: [],
  addressed: false,
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

let api: TestApi;
let appId: string;
beforeAll(async () => {
  api = await createTestApi({ extraKinds: [fetching] });
  const blueprint = await api.call("POST", "/blueprints", { title: "x" });
  appId = (await api.call("POST", "/apps/install", { blueprintId: blueprint.body.id })).body.id;
});
afterAll(() => api[Symbol.asyncDispose]());

let made = 0;
const create = async (input: object = {}) => {
  const { status, body } = await api.call("POST", `/apps/${appId}/channels`, {
    uid: `c${++made}`,
    kind: "webhook",
    events: [{ type: "push" }],
    ...input,
  });
  expect(status).toBe(200);
  return body;
};

const topics = (uid: string) =>
  api.database.db.selectFrom("topics").selectAll().where("channelUid", "=", uid).orderBy("type").execute();

const stored = async (id: string) =>
  api.database.db.selectFrom("channels").selectAll().where("id", "=", id).executeTakeFirstOrThrow();

const live = () => createLiveChannels({ db: api.database.db, keyring: api.keyring });

describe("a channel", () => {
  it("is made, read, listed in order of creation, and has an address where its kind receives", async () => {
    const webhook = await create();
    const polling = await create({ kind: "polling", config: { endpoint: "https://api.example" } });
    expect(webhook.url).toBe(`https://hooks.example/hooks/${webhook.id}`);
    expect(polling.url).toBeNull();
    expect((await api.call("GET", `/apps/${appId}/channels/${webhook.id}`)).body).toEqual(webhook);
    const listed = await api.call("GET", `/apps/${appId}/channels?limit=200`);
    expect(listed.body.slice(-2)).toEqual([webhook, polling]);
    expect(listed.headers.get("x-total-count")).toBe(String(listed.body.length));
  });

  it("has a uid of its own in its app, given once and for all", async () => {
    const { uid, id } = await create();
    const again = await api.call("POST", `/apps/${appId}/channels`, { uid, kind: "webhook" });
    expect([again.status, again.body.code]).toEqual([409, "conflict"]);
    for (const patch of [{ uid: "other" }, { kind: "polling" }]) {
      const refused = await api.call("PUT", `/apps/${appId}/channels/${id}`, patch);
      expect([refused.status, refused.body.details[0].path]).toEqual([400, Object.keys(patch)[0]]);
    }
  });

  it("shows its secrets to nobody and keeps them sealed", async () => {
    const channel = await create({ config: { verification: HMAC, secrets: [{ value: "s3cret-one" }] } });
    const path = `/apps/${appId}/channels/${channel.id}`;
    const answers = [
      channel,
      (await api.call("GET", path)).body,
      (await api.call("PUT", path, { title: "t" })).body,
    ];
    for (const answer of answers) {
      expect(JSON.stringify(answer)).not.toContain("s3cret");
      expect(answer.config).not.toHaveProperty("secrets");
      expect(answer.state).toBe("active");
    }
    const row = await stored(channel.id);
    expect(JSON.stringify(row)).not.toContain("s3cret");
    expect(row.sealedSettings).toMatch(/^s1\./);
    expect((await live().findById(channel.id))?.channel.settings).toMatchObject({
      secrets: [{ value: "s3cret-one" }],
    });
  });

  it("needs setup until its scheme has a secret, and again without", async () => {
    const channel = await create({ config: { verification: HMAC } });
    const path = `/apps/${appId}/channels/${channel.id}`;
    expect(channel.state).toBe("needsSetup");
    const set = await api.call("PUT", path, { config: { secrets: [{ value: "s3cret" }] } });
    expect(set.body.state).toBe("active");
    expect(set.body.config.verification).toMatchObject({ scheme: "hmac" });
    expect((await api.call("PUT", path, { title: "kept" })).body.state).toBe("active");
    expect((await api.call("PUT", path, { config: { secrets: null } })).body.state).toBe("needsSetup");
  });

  it("does not open its secrets in another channel's row", async () => {
    const [first, second] = [await create({ config: { secrets: [{ value: "s3cret" }] } }), await create()];
    const { sealedSettings } = await stored(first.id);
    await api.database.db
      .updateTable("channels")
      .set({ sealedSettings })
      .where("id", "=", second.id)
      .execute();
    await expect(live().findById(second.id)).rejects.toThrow("another row");
  });

  it("is changed by merge patch; its topics and the feed follow", async () => {
    const channel = await create({ events: [{ type: "a" }, { type: "b" }] });
    const path = `/apps/${appId}/channels/${channel.id}`;
    const { body } = await api.call("PUT", path, {
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
    await api.call("PUT", path, { events: [{ type: "a" }] });
    expect((await topics(channel.uid)).map(({ retiredAt }) => retiredAt !== null)).toEqual([
      false,
      true,
      true,
    ]);
    const { number } = await stored(channel.id);
    const told = await api.database.db
      .selectFrom("changes")
      .select("id")
      .where("kind", "=", "channel")
      .where("key", "=", String(number))
      .execute();
    expect(told).toHaveLength(3);
  });

  it("loses none of the changes that are made at the same time", async () => {
    const { id } = await create();
    const path = `/apps/${appId}/channels/${id}`;
    const patches = [
      { title: "t" },
      { config: { onInvalid: "reject" } },
      { config: { dedupe: { by: "content" } } },
    ];
    const answers = await Promise.all(patches.map((patch) => api.call("PUT", path, patch)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await api.call("GET", path)).body).toMatchObject({
      title: "t",
      config: { onInvalid: "reject", dedupe: { by: "content" } },
    });
  });

  it("stays paused whatever is written", async () => {
    const { id } = await create();
    await api.database.db.updateTable("channels").set({ state: "paused" }).where("id", "=", id).execute();
    expect((await api.call("PUT", `/apps/${appId}/channels/${id}`, { title: "t" })).body.state).toBe(
      "paused",
    );
  });

  it.each([
    ["config.limits.maxDepth", { config: { limits: { maxDepth: 0 } } }],
    ["config.verification", { config: { verification: { scheme: "trust" } } }],
    ["events[0].typePath", { events: [{ type: "a", typePath: "nonsense" }] }],
  ])("is refused when %s does not fit", async (path, input) => {
    const base = { uid: "refused", kind: "webhook" };
    const posted = await api.call("POST", `/apps/${appId}/channels`, { ...base, ...input });
    expect([posted.status, posted.body.details?.[0]?.path]).toEqual([
      400,
      expect.stringMatching(`^${literal(path)}`),
    ]);
    const { id } = await create();
    const put = await api.call("PUT", `/apps/${appId}/channels/${id}`, input);
    expect([put.status, put.body.details?.[0]?.path]).toEqual([
      400,
      expect.stringMatching(`^${literal(path)}`),
    ]);
  });

  it("is deleted with its secrets; a new one of the same uid inherits no identity but takes up the topics", async () => {
    const first = await create({ uid: "again", config: { secrets: [{ value: "s3cret" }] } });
    const path = `/apps/${appId}/channels/${first.id}`;
    const { number } = await stored(first.id);
    expect((await api.call("DELETE", path)).body).toEqual({ id: first.id });
    for (const method of ["GET", "DELETE"]) expect((await api.call(method, path)).status).toBe(404);
    expect(await live().findById(first.id)).toBeUndefined();
    expect((await topics("again"))[0]?.retiredAt).toBeInstanceOf(Date);
    const second = await create({ uid: "again" });
    const successor = await stored(second.id);
    expect(successor.number).toBeGreaterThan(number);
    expect(second.id).not.toBe(first.id);
    expect(await topics("again")).toMatchObject([{ channelNumber: successor.number, retiredAt: null }]);
  });

  it("is found in its own app only", async () => {
    const { id } = await create();
    const blueprint = await api.call("POST", "/blueprints", { title: "y" });
    const other = (await api.call("POST", "/apps/install", { blueprintId: blueprint.body.id })).body.id;
    for (const app of [other, "app_x", "nonsense"]) {
      for (const method of ["GET", "PUT", "DELETE"]) {
        expect(
          (await api.call(method, `/apps/${app}/channels/${id}`, method === "PUT" ? {} : undefined)).status,
        ).toBe(404);
      }
    }
    for (const app of ["app_x", `app_${"0".repeat(23)}`]) {
      expect((await api.call("GET", `/apps/${app}/channels`)).status).toBe(404);
      expect((await api.call("POST", `/apps/${app}/channels`, { uid: "a", kind: "webhook" })).status).toBe(
        404,
      );
    }
  });
});

const literal = (text: string): string => text.replace(/[.[\]]/g, "\\$&");
