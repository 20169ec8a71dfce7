import { beforeEach, describe, expect, it } from "vitest";
import { z } from "zod";
import type { ChannelKind } from "../../../src/channels/kind.ts";
import { hasAddress, hashOfAddress } from "../../../src/data/channels/address-columns.ts";
import { createStoredChannels } from "../../../src/data/channels/stored-channels.ts";
import { commonFields } from "../../../src/event/channel.ts";
import { createTestApi } from "../../support/api.ts";
import { opened } from "../../support/opened.ts";

/** A pull channel kind. Its channels have no address. */
const fetching: ChannelKind = {
  kind: "polling",
  configSchema: z.strictObject({ ...commonFields }),
  secretFields: [],
  addressed: false,
  profile: { roots: new Map() },
  needsSetup: () => false,
  start: async () => ({ async [Symbol.asyncDispose]() {} }),
};

let appId: string;
let id: string;
const api = opened(() => createTestApi({ extraKinds: [fetching] }));
beforeEach(async () => {
  const channels = [{ uid: "in", kind: "webhook", events: [{ type: "a" }] }];
  const blueprint = await api.call.post("/blueprints", { title: "x", channels });
  const app = await api.call.post("/apps/install", { blueprintId: blueprint.id });
  appId = app.id;
  id = app.channels[0].id;
});

const act = (action: string, body?: object, channelId = id) =>
  api.call("POST", `/apps/${appId}/channels/${channelId}/${action}`, body);

/** Returns whether an address is a channel's present one, or a former one in its grace period. `undefined` if it is unknown. */
async function reached(address: string): Promise<"present" | "former" | undefined> {
  const live = createStoredChannels({ db: api.database.db, keyring: api.keyring });
  const found = await live.findById(address);
  return found && (found.leftMs === undefined ? "present" : "former");
}

async function rotate(body?: object): Promise<string> {
  const { status, body: channel } = await act("rotate", body);
  expect([status, channel.uid]).toEqual([200, "in"]);
  id = channel.id;
  return channel.id;
}

describe("rotating a channel's address", () => {
  it("ends every old address after the grace period of the latest rotation", async () => {
    const first = id;
    const second = await rotate({ graceSeconds: 86_400 });
    const third = await rotate();
    expect(await Promise.all([first, second, third].map(reached))).toEqual(["former", "former", "present"]);
    await rotate({ graceSeconds: 3_600 });
    const latestMs = Date.now() + 3_601_000;
    const { db } = api.database;
    const former = [first, second, third];
    const hashes = former.map((one) => hashOfAddress(api.keyring, one));
    const left = await db
      .selectFrom("channelAddresses")
      .select("expiresAt")
      .where("addressHash", "in", hashes)
      .execute();
    expect(left).toHaveLength(3);
    for (const { expiresAt } of left) expect(expiresAt.getTime()).toBeLessThan(latestMs);
    expect(await Promise.all(former.map(reached))).toEqual(["former", "former", "former"]);
    const expiresAt = new Date(Date.now() - 60_000);
    await db.updateTable("channelAddresses").set({ expiresAt }).where("addressHash", "in", hashes).execute();
    expect(await Promise.all(former.map(reached))).toEqual([undefined, undefined, undefined]);
  });

  it("ends every old address immediately if the grace period is 0", async () => {
    const first = id;
    const second = await rotate();
    const third = await rotate({ graceSeconds: 0 });
    expect(await Promise.all([first, second, third].map(reached))).toEqual([undefined, undefined, "present"]);
  });

  it("is rejected while ten old addresses are still in their grace period", async () => {
    for (let i = 0; i < 10; i++) await rotate();
    const before = await api.call.get(`/apps/${appId}/channels/${id}`);
    expect((await act("rotate")).status).toBe(409);
    expect(await api.call.get(`/apps/${appId}/channels/${id}`)).toEqual(before);
    await rotate({ graceSeconds: 0 });
    await rotate();
  });

  it("leaves no old address in use after the channel is deleted", async () => {
    const first = id;
    await rotate();
    await api.call.delete(`/apps/${appId}/channels/${id}`);
    expect(await reached(first)).toBeUndefined();
  });

  it("succeeds for one of several concurrent requests, and responds with 404 to the others", async () => {
    const answers = await Promise.all([act("rotate"), act("rotate"), act("rotate")]);
    const made = answers.filter(({ status }) => status === 200);
    expect(made).toHaveLength(1);
    expect(answers.filter(({ status }) => status === 404)).toHaveLength(2);
    expect(await reached(made[0]?.body.id)).toBe("present");
  });
});

describe("pausing, resuming and rotating a channel", () => {
  it("writes one audit entry for each actual change, without the channel's secret address", async () => {
    for (const action of ["pause", "pause", "resume", "resume", "rotate"]) await act(action);
    const notes = await api.database.db
      .selectFrom("audit")
      .select(["action", "entityId"])
      .where("entityId", "=", `${appId}/in`)
      .where("action", "in", ["pause", "resume", "rotate"])
      .execute();
    expect(notes.map(({ action }) => action).sort()).toEqual(["pause", "resume", "rotate"]);
  });

  it("adds each change to the change feed under the internal channel id, which stays the same", async () => {
    const { db } = api.database;
    const row = await db
      .selectFrom("channels")
      .select("number")
      .where(hasAddress(api.keyring, id))
      .executeTakeFirst();
    await db.deleteFrom("changes").execute();
    for (const action of ["pause", "resume", "rotate"]) await act(action);
    const changes = await db.selectFrom("changes").select(["kind", "key"]).execute();
    expect(changes).toEqual(Array(3).fill({ kind: "channel", key: String(row?.number) }));
  });

  it("rejects a grace period that is not an integer number of seconds up to 30 days", async () => {
    for (const graceSeconds of [-1, 1.5, 2_592_001, "1"]) {
      expect([graceSeconds, (await act("rotate", { graceSeconds })).status]).toEqual([graceSeconds, 400]);
    }
  });

  it("stores no pause buffer for a channel that polls or streams", async () => {
    const made = await api.call.post(`/apps/${appId}/channels`, { uid: "out", kind: "polling" });
    const stored = () =>
      api.database.db.selectFrom("channels").select("pause").where(hasAddress(api.keyring, made.id));
    expect((await act("pause", {}, made.id)).body).toMatchObject({ state: "paused", url: null });
    expect(await stored().execute()).toEqual([{ pause: null }]);
    expect((await act("resume", {}, made.id)).body).toMatchObject({ state: "active" });
  });
});
