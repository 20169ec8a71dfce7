import { setImmediate as turn } from "node:timers/promises";
import { afterEach, expect, it, vi } from "vitest";
import { type Change, recordChange, startChangeFeed } from "../../../src/data/changes.ts";
import { createLog } from "../../../src/log.ts";
import { createTestDatabase } from "../../support/postgres.ts";

afterEach(() => {
  vi.useRealTimers();
});

// A read change takes effect without further delay (see sources.test.ts). So all workers follow the API within two seconds.
it("a worker reads changes of channels from the database once a second", async () => {
  await using database = await createTestDatabase();
  const { db } = database;
  const changes: Change[] = [];
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  await using feed = await startChangeFeed({ db, log: createLog({ level: "silent" }) });
  feed.subscribe({ onChange: (change) => void changes.push(change), onReset: () => {} });
  await db.transaction().execute((trx) => recordChange(trx, { kind: "source", key: "1" }));
  const timers = vi.getTimerCount();
  vi.advanceTimersByTime(999);
  expect(vi.getTimerCount()).toBe(timers);
  vi.advanceTimersByTime(1);
  while (changes.length === 0) await turn();
  expect(changes).toEqual([{ kind: "source", key: "1" }]);
});
