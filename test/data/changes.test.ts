import { sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ChangeFeedOptions, recordChange, startChangeFeed } from "../../src/data/changes.ts";
import { createLog } from "../../src/log.ts";
import { createTestDatabase, type TestDatabase } from "../support/postgres.ts";
import { until } from "../support/until.ts";

const NEVER_MS = 3_600_000;

let database: TestDatabase;
beforeEach(async () => {
  database = await createTestDatabase();
});
afterEach(() => database[Symbol.asyncDispose]());

async function startFeed(options: Partial<ChangeFeedOptions> = {}) {
  const seen: string[] = [];
  let resets = 0;
  const feed = await startChangeFeed({
    db: database.db,
    log: createLog({ level: "silent" }),
    pollEveryMs: NEVER_MS,
    ...options,
  });
  feed.subscribe({ onChange: ({ key }) => void seen.push(key), onReset: () => void resets++ });
  return { feed, seen, resets: () => resets, [Symbol.asyncDispose]: () => feed[Symbol.asyncDispose]() };
}

const change = (key: string) =>
  database.db.transaction().execute((trx) => recordChange(trx, { kind: "channel", key }));

const INSERT = "INSERT INTO changes (kind, key) VALUES ('channel', $1)";

describe("the change feed", () => {
  it("reports each committed change once, at the next scheduled poll", async () => {
    await change("before");
    await using reader = await startFeed({ pollEveryMs: 10 });
    await change("1");
    await change("2");
    await until(() => reader.seen.length >= 2);
    await reader.feed.readNow();
    expect(reader.seen).toEqual(["1", "2"]);
    expect(reader.resets()).toBe(0);
  });

  it("does not report the changes of a transaction that was rolled back", async () => {
    await using reader = await startFeed();
    const rolledBack = database.db.transaction().execute(async (trx) => {
      await recordChange(trx, { kind: "channel", key: "undone" });
      throw new Error("undone");
    });
    await expect(rolledBack).rejects.toThrow("undone");
    await reader.feed.readNow();
    expect(reader.seen).toEqual([]);
  });

  it("reports changes of a long transaction after its commit, without delaying changes of other transactions", async () => {
    await using reader = await startFeed();
    const late = await database.connect();
    await late.query("BEGIN");
    await late.query(INSERT, ["late"]);
    for (const key of ["1", "2", "3"]) {
      await change(key);
      await reader.feed.readNow();
    }
    expect(reader.seen).toEqual(["1", "2", "3"]);
    await late.query("COMMIT");
    await late.end();
    await reader.feed.readNow();
    await reader.feed.readNow();
    expect(reader.seen).toEqual(["1", "2", "3", "late"]);
  });

  it("reports changes without delay even while transactions are open in another database of the same server", async () => {
    await using elsewhere = await createTestDatabase();
    const open = await elsewhere.connect();
    await open.query("BEGIN");
    await open.query(INSERT, ["elsewhere"]);
    await using reader = await startFeed();
    const late = await database.connect();
    await late.query("BEGIN");
    await late.query(INSERT, ["late"]);
    await change("1");
    await reader.feed.readNow();
    expect(reader.seen).toEqual(["1"]);
    await late.query("COMMIT");
    await reader.feed.readNow();
    await open.query("COMMIT");
    await change("2");
    await reader.feed.readNow();
    expect(reader.seen).toEqual(["1", "late", "2"]);
    await Promise.all([open.end(), late.end()]);
  });

  it("reports each change exactly once if many writers commit out of order", async () => {
    await using reader = await startFeed({ pollEveryMs: 1 });
    const writers = await Promise.all(Array.from({ length: 8 }, () => database.connect()));
    await Promise.all(
      writers.map(async (client, writer) => {
        for (let turn = 0; turn < 25; turn++) {
          await client.query("BEGIN");
          await client.query(INSERT, [`${writer}/${turn}`]);
          await client.query("SELECT pg_sleep($1)", [((writer * 7 + turn * 3) % 11) / 1000]);
          await client.query("COMMIT");
        }
        await client.end();
      }),
    );
    await reader.feed.readNow();
    expect(reader.seen).toHaveLength(200);
    expect(new Set(reader.seen).size).toBe(200);
  });

  it("has reported all earlier commits when readNow() resolves, even if another read was in progress", async () => {
    await using reader = await startFeed();
    const first = reader.feed.readNow();
    await change("1");
    await reader.feed.readNow();
    expect(reader.seen).toEqual(["1"]);
    await first;
  });

  it("reports a change again if a listener threw an error", async () => {
    let refuse = true;
    const applied: string[] = [];
    await using reader = await startFeed();
    reader.feed.subscribe({
      onChange: ({ key }) => {
        if (refuse) throw new Error("not now");
        applied.push(key);
      },
      onReset: () => {},
    });
    await change("1");
    await expect(reader.feed.readNow()).rejects.toThrow("not now");
    refuse = false;
    await reader.feed.readNow();
    expect(applied).toEqual(["1"]);
  });

  it("tells listeners to reload everything if one poll finds more changes than the maximum", async () => {
    await using reader = await startFeed({ maxChanges: 2 });
    for (const key of ["1", "2", "3"]) await change(key);
    await reader.feed.readNow();
    expect([reader.seen, reader.resets()]).toEqual([[], 1]);
    await change("4");
    await reader.feed.readNow();
    expect(reader.seen).toEqual(["4"]);
  });

  it("reports for how long it has not been read successfully, even while reads fail", async () => {
    let nowMs = 1_000;
    await using reader = await startFeed({ nowMs: () => nowMs, pollEveryMs: 5 });
    nowMs = 2_000;
    await until(() => reader.feed.stalenessMs() === 0);
    await sql`ALTER TABLE changes RENAME TO changes_away`.execute(database.db);
    await expect(reader.feed.readNow()).rejects.toThrow();
    nowMs = 3_000;
    await expect(reader.feed.readNow()).rejects.toThrow();
    expect(reader.feed.stalenessMs()).toBe(1_000);
    await sql`ALTER TABLE changes_away RENAME TO changes`.execute(database.db);
    await until(() => reader.feed.stalenessMs() === 0);
  });

  it("deletes a change only after readers could see the change for the whole retention time", async () => {
    const late = await database.connect();
    await late.query("BEGIN");
    await late.query(INSERT, ["late"]);
    await change("old");
    await using _reader = await startFeed({ pollEveryMs: 5, retentionSeconds: 0.2 });
    const keys = async () =>
      (await database.db.selectFrom("changes").select("key").execute()).map((row) => row.key);
    // An open transaction holds back the pruning of all younger changes.
    const pruned = async () =>
      (await database.db.selectFrom("changesPruned").select("at").executeTakeFirstOrThrow()).at;
    const before = await pruned();
    await until(async () => (await pruned()) > before);
    const second = await pruned();
    await until(async () => (await pruned()) > second);
    expect(await keys()).toEqual(["old"]);
    await late.query("COMMIT");
    await late.end();
    await until(async () => (await keys()).length === 0);
  });

  it("tells listeners to reload everything after an outage longer than the retention time", async () => {
    await using reader = await startFeed({ retentionSeconds: 0.05 });
    await change("1");
    await sql`SELECT pg_sleep(0.1)`.execute(database.db);
    await reader.feed.readNow();
    expect([reader.seen, reader.resets()]).toEqual([[], 1]);
  });
});
