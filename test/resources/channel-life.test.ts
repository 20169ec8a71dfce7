import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChannelKind } from "../../src/channels/kind.ts";
import { createLiveChannels } from "../../src/data/live-channels.ts";
import { commonSettings } from "../../src/event/channel.ts";
import { createTestApi, type TestApi } from "../support/api.ts";

/** A kind that fetches: its channels have no address. */
const fetching: ChannelKind = {
  kind: "polling",
  settings: z.strictObject({ ...commonSettings }),
  secretSettings: [],
  addressed: false,
  needsSetup: () => false,
  start: async () => ({ async [Symbol.asyncDispose]() {} }),
};

let api: TestApi;
let appId: string;
let id: string;
beforeAll(async () => {
  api = await createTestApi({ extraKinds: [fetching] });
});
afterAll(() => api[Symbol.asyncDispose]());
beforeEach(async () => {
  const channels = [{ uid: "in", kind: "webhook", events: [{ type: "a" }] }];
  const blueprint = await api.call("POST", "/blueprints", { title: "x", channels });
  const app = (await api.call("POST", "/apps/install", { blueprintId: blueprint.body.id })).body;
  appId = app.id;
  id = app.channels[0].id;
});

const act = (what: string, body?: object, channelId = id) =>
  api.call("POST", `/apps/${appId}/channels/${channelId}/${what}`, body);

/** What an address leads to. */
async function reached(address: string): Promise<"present" | "former" | undefined> {
  const live = createLiveChannels({ db: api.database.db, keyring: api.keyring });
  const found = await live.findById(address);
  return found && (found.leftMs === undefined ? "present" : "former");
}

async function rotate(body?: object): Promise<string> {
  const { status, body: channel } = await act("rotate", body);
  expect([status, channel.uid]).toEqual([200, "in"]);
  id = channel.id;
  return channel.id;
}

describe("giving a channel a new address", () => {
  it("ends those of before within the grace that was given last, at once where it is none", async () => {
    const first = id;
    const second = await rotate({ graceSeconds: 86_400 });
    const third = await rotate();
    expect(await Promise.all([first, second, third].map(reached))).toEqual(["former", "former", "present"]);
    const fourth = await rotate({ graceSeconds: 1 });
    const left = await api.database.db
      .selectFrom("channelAddresses")
      .select(["id", "expiresAt"])
      .where("id", "in", [first, second, third])
      .execute();
    expect(left).toHaveLength(3);
    for (const { expiresAt } of left) expect(expiresAt.getTime()).toBeLessThan(Date.now() + 2_000);
    const fifth = await rotate({ graceSeconds: 0 });
    expect(await Promise.all([first, second, third, fourth, fifth].map(reached))).toEqual([
      ...[undefined, undefined, undefined, undefined, "present"],
    ]);
  });

  it("is refused where ten of before still go on, and changes nothing then", async () => {
    for (let i = 0; i < 10; i++) await rotate();
    const before = (await api.call("GET", `/apps/${appId}/channels/${id}`)).body;
    expect((await act("rotate")).status).toBe(409);
    expect((await api.call("GET", `/apps/${appId}/channels/${id}`)).body).toEqual(before);
    await rotate({ graceSeconds: 0 });
    await rotate();
  });

  it("takes the addresses of before with it when the channel is deleted", async () => {
    const first = id;
    await rotate();
    await api.call("DELETE", `/apps/${appId}/channels/${id}`);
    expect(await reached(first)).toBeUndefined();
  });

  it("of two at once makes one after the other, or answers that the address is no longer one", async () => {
    const answers = await Promise.all([act("rotate"), act("rotate"), act("rotate")]);
    const made = answers.filter(({ status }) => status === 200);
    expect(made).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(2);
    expect(await reached(made[0]?.body.id)).toBe("present");
  });
});

describe("what is done to a channel", () => {
  it("is noted once for each that changed something, under a name that is no credential", async () => {
    for (const what of ["pause", "pause", "resume", "resume", "rotate"]) await act(what);
    const notes = await api.database.db
      .selectFrom("audit")
      .select(["action", "entityId"])
      .where("entityId", "=", `${appId}/in`)
      .where("action", "in", ["pause", "resume", "rotate"])
      .orderBy("createdAt")
      .orderBy("id")
      .execute();
    expect(notes.map(({ action }) => action).sort()).toEqual(["pause", "resume", "rotate"]);
  });

  it("tells the change feed by the channel's number, which stays", async () => {
    const { db } = api.database;
    const row = await db.selectFrom("channels").select("number").where("id", "=", id).executeTakeFirst();
    await db.deleteFrom("changes").execute();
    for (const what of ["pause", "resume", "rotate"]) await act(what);
    const changes = await db.selectFrom("changes").select(["kind", "key"]).execute();
    expect(changes).toEqual(Array(3).fill({ kind: "channel", key: String(row?.number) }));
  });

  it("is for the channel's organization and for writers alone; what does not fit is 400", async () => {
    const path = `/apps/${appId}/channels/${id}`;
    const stranger = api.as(await api.strangerKey());
    const reader = api.as(await api.keyWith("apps.read"));
    for (const what of ["pause", "resume", "rotate"]) {
      expect((await stranger("POST", `${path}/${what}`)).status).toBe(404);
      expect((await reader("POST", `${path}/${what}`)).status).toBe(403);
      expect((await act(what, { more: 1 })).status).toBe(400);
      expect((await act(what, {}, `ch_${"0".repeat(36)}`)).status).toBe(404);
    }
    for (const graceSeconds of [-1, 1.5, 2_592_001, "1", null]) {
      expect([graceSeconds, (await act("rotate", { graceSeconds })).status]).toEqual([graceSeconds, 400]);
    }
  });

  it("keeps nothing back where nobody sends: a channel that fetches just stops", async () => {
    const made = await api.call("POST", `/apps/${appId}/channels`, { uid: "out", kind: "polling" });
    const pause = async () =>
      (
        await api.database.db
          .selectFrom("channels")
          .select("pause")
          .where("id", "=", made.body.id)
          .executeTakeFirstOrThrow()
      ).pause;
    expect((await act("pause", {}, made.body.id)).body).toMatchObject({ state: "paused", url: null });
    expect(await pause()).toBeNull();
    expect((await act("resume", {}, made.body.id)).body).toMatchObject({ state: "active" });
  });
});
