import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { afterAll, describe, expect, it } from "vitest";
import { loadRdb } from "../../../src/bus/backup/load-rdb.ts";
import { openRdbTransfer } from "../../../src/bus/backup/rdb-transfer.ts";
import { findLocalRedis, startLocalRedis } from "../../../src/bus/connection/local-redis.ts";
import { openRedis } from "../../../src/bus/connection/redis.ts";
import { cursorKey, SHARD_KEYS, slotsKey } from "../../../src/bus/keys.ts";
import { createShardLeases } from "../../../src/bus/sources/shard-leases.ts";
import { createSourcePositions } from "../../../src/bus/sources/source-positions.ts";
import { createLog } from "../../../src/log.ts";
import { itDeep } from "../../support/deep-run.ts";

const log = createLog({ level: "silent" });
const { signal } = new AbortController();
const made: string[] = [];
afterAll(() => {
  for (const dir of made) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

function folder(): string {
  const dir = realpathSync(mkdtempSync(join(tmpdir(), "inlet-rdb-")));
  made.push(dir);
  mkdirSync(join(dir, "log"));
  return dir;
}

async function openBus(socketPath: string) {
  const redis = await openRedis({
    url: `unix://${socketPath}`,
    log,
    signal,
    durability: "none",
    durabilityAsserted: false,
  });
  return Object.assign(redis, { positions: createSourcePositions({ redis }) });
}

describe("copying the embedded Redis to another data directory", () => {
  itDeep(
    "excludes writes that arrive after the transfer began, and keeps the cursors of pull sources",
    async () => {
      const [from, to] = [folder(), folder()];
      const source = { number: 7, topics: ["topic.a", "topic.b"] };
      await using transferred = new AsyncDisposableStack();
      const first = transferred.use(await startLocalRedis({ dataDir: from, log, signal }));
      expect(await findLocalRedis(from)).toBe(first.socketPath);
      const client = new Redis({ path: first.socketPath });
      transferred.defer(() => client.disconnect());
      const bus = transferred.use(await openBus(first.socketPath));
      const taken = await bus.positions.takeOver(source);
      if (taken.kind !== "acquired") throw new Error(taken.kind);
      await client.hset(cursorKey(7), "c", "page-3", "v", "3");
      const leases = createShardLeases({ redis: bus });
      await leases.renew("gone", { ttlMs: 3_600_000, most: 9 });
      await leases.renew("gone", { ttlMs: 3_600_000, most: 9 });
      await client.zadd(slotsKey("polls"), Date.now() + 3_600_000, "gone");
      const large = "x".repeat(100_000);
      for (let n = 0; n < 100; n++)
        await client.xadd("topic.a", `${n + 1}-0`, "n", `${n}`, "data", large + n);
      const erased = { topic: "topic.a", entryId: "5-0" };

      const loaded = await (async () => {
        using transfer = await openRdbTransfer(first.socketPath, signal);
        expect(transfer.version).toMatch(/^\d+\.\d+/);
        await client.xadd("topic.a", "1000-0", "n", "too late");
        const listTopics = async (number: number) => (number === source.number ? source.topics : []);
        return await loadRdb({
          dataDir: to,
          content: transfer.content,
          listTopics,
          deleted: [erased],
          log,
          signal,
        });
      })();
      expect(loaded).toEqual({ sources: 1 });
      expect(readdirSync(join(to, "redis"))).toEqual(["appendonlydir"]);
      // The first server wrote no file next to its append-only file.
      expect(existsSync(join(from, "redis", "dump.rdb"))).toBe(false);

      await using second = await startLocalRedis({ dataDir: to, log, signal });
      const copy = new Redis({ path: second.socketPath });
      await using other = await openBus(second.socketPath);
      try {
        const entries = await copy.xrange("topic.a", "-", "+");
        const numbers = entries.map(([, fields]) => Number(fields[1]));
        expect(numbers).toEqual(Array.from({ length: 100 }, (_, n) => n).filter((n) => n !== 4));
        expect(entries.every(([, fields]) => fields[3] === large + fields[1])).toBe(true);
        expect(await copy.exists(SHARD_KEYS.workers, SHARD_KEYS.owners, slotsKey("polls"))).toBe(0);
        const ending = { failures: 0, notBeforeMs: 0, retryInMs: 0 };
        expect(await other.positions.end(7, taken.epoch, ending)).toBe("gone");
        expect(await copy.hget("{topic.b}:e", "s7")).toBe(await copy.hget(cursorKey(7), "e"));
        expect(await other.positions.takeOver(source)).toMatchObject({ version: 3, value: "page-3" });
      } finally {
        copy.disconnect();
      }
    },
  );

  it("fails if the connection breaks during the transfer, and leaves no incomplete file", async () => {
    await using redis = await startLocalRedis({ dataDir: folder(), log, signal });
    const client = new Redis({ path: redis.socketPath });
    try {
      // Random data: compressible data would pass through the socket before the connection is killed.
      for (let n = 0; n < 50; n++) await client.set(`key-${n}`, randomBytes(200_000));
      using transfer = await openRdbTransfer(redis.socketPath, signal);
      const reading = (async () => {
        for await (const _ of transfer.content) await client.call("client", "kill", "type", "replica");
      })();
      await expect(reading).rejects.toThrow(/before the snapshot was complete|ECONNRESET|EPIPE/);
    } finally {
      client.disconnect();
    }
  });
});
