import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { pageTopics, retireTopics, writeTopics } from "../../src/data/channels/topics.ts";
import { type Removal, recordRemovals, settleRemovals } from "../../src/data/removals.ts";
import type { ChannelIdentity } from "../../src/event/channel.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";

const RETENTION = { maxAgeSeconds: 60, maxEntries: 10, maxBytes: 1_048_576 };
const { signal } = new AbortController();

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database[Symbol.asyncDispose]());

const channelOf = (number: number): ChannelIdentity => ({
  number,
  uid: "main",
  kind: "webhook",
  appId: "app_1",
  organizationId: "org_1",
});

const write = (channel: ChannelIdentity, ...types: string[]) =>
  database.db
    .transaction()
    .execute((trx) =>
      writeTopics(trx, channel, { events: types.map((type) => ({ type })), retention: RETENTION }, 0),
    );

const remove = (channel: ChannelIdentity, purge: boolean) =>
  database.db.transaction().execute(async (trx) => {
    const topics = await retireTopics(trx, channel.number, 0);
    await recordRemovals(trx, [{ kind: "channel", channel, topics, purge }], 0);
  });

const settle = async () => {
  const done: Removal[] = [];
  await settleRemovals(database.db, async (removal) => void done.push(removal), { signal });
  return done;
};

const ages = async () =>
  (await pageTopics(database.db, "", 10)).map(({ type, maxAgeSeconds }) => [type, maxAgeSeconds]);

const topics = async () => (await pageTopics(database.db, "", 10)).map(({ type }) => type);

describe("pending removals of deleted channels", () => {
  it("are carried out once each, oldest first, and reduce the retention of purged topics to the minimum", async () => {
    await write(channelOf(1), "a", "b");
    await remove(channelOf(1), false);
    await remove(channelOf(1), true);
    expect(await settle()).toMatchObject([
      { purge: false },
      { purge: true, topics: [expect.stringMatching(/a$/), expect.stringMatching(/b$/)] },
    ]);
    expect(await ages()).toEqual([
      ["a", 1],
      ["b", 1],
    ]);
    expect(await settle()).toEqual([]);
  });

  it("stay recorded if they fail", async () => {
    await remove(channelOf(1), true);
    const failing = settleRemovals(database.db, () => Promise.reject(new Error("Redis is away")), { signal });
    await expect(failing).rejects.toThrow("Redis is away");
    expect(await settle()).toHaveLength(1);
  });

  it("continue with the next removal if one fails, and the failed removal stays recorded", async () => {
    for (const number of [1, 2, 3]) await remove(channelOf(number), true);
    const done: number[] = [];
    const tried: number[] = [];
    const carryOut = async (removal: Removal): Promise<void> => {
      if (removal.kind !== "channel") return;
      const { number } = removal.channel;
      tried.push(number);
      if (number === 1) throw new Error("WRONGTYPE");
      done.push(number);
    };
    await expect(settleRemovals(database.db, carryOut, { signal })).rejects.toThrow("WRONGTYPE");
    expect([tried, done]).toEqual([
      [1, 2, 3],
      [2, 3],
    ]);
    expect(await settle()).toMatchObject([{ channel: { number: 1 } }]);
  });

  it("stay recorded while Redis is unavailable, and the next attempt starts with a different removal", async () => {
    for (const number of [1, 2]) await remove(channelOf(number), true);
    const tried: Removal[] = [];
    const away = (removal: Removal) => {
      tried.push(removal);
      return Promise.reject(new UnavailableError("Redis is away"));
    };
    for (let turn = 0; turn < 2; turn++) {
      await expect(settleRemovals(database.db, away, { signal })).rejects.toThrow(UnavailableError);
    }
    expect(tried).toMatchObject([{ channel: { number: 1 } }, { channel: { number: 2 } }]);
    expect(await settle()).toHaveLength(2);
  });

  it("are each carried out only once if several gateways work on them", async () => {
    for (let number = 1; number <= 20; number++) await remove(channelOf(number), true);
    const done = (await Promise.all([settle(), settle(), settle()])).flat();
    expect(done).toHaveLength(20);
  });

  it("do not clear a topic that a new channel with the same uid already uses", async () => {
    await write(channelOf(1), "kept", "gone");
    await remove(channelOf(1), true);
    await write(channelOf(2), "kept");
    expect(await settle()).toMatchObject([{ topics: [expect.stringMatching(/gone$/)] }]);
    expect(await ages()).toEqual([
      ["gone", 1],
      ["kept", RETENTION.maxAgeSeconds],
    ]);
  });

  it("block a new channel's first write to a topic until the topic is cleared", async () => {
    await write(channelOf(1), "a");
    await remove(channelOf(1), true);
    let written = false;
    let writing: Promise<void> | undefined;
    await settleRemovals(
      database.db,
      async () => {
        writing = write(channelOf(2), "a").then(() => {
          written = true;
        });
        // Long enough for a write that is not blocked.
        await database.db.selectFrom("topics").select("topic").execute();
        await database.db.selectFrom("topics").select("topic").execute();
        expect(written).toBe(false);
      },
      { signal },
    );
    await writing;
    expect(await topics()).toEqual(["a"]);
  });
});
