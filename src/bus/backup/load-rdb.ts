import { createWriteStream } from "node:fs";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";
import type { Redis } from "ioredis";
import { luaScript } from "../../lib/lua.ts";
import type { Log } from "../../log.ts";
import { withTemporaryClient } from "../connection/general-connection.ts";
import { RDB_FILE, startLocalRedis } from "../connection/local-redis.ts";
import { parseInfo } from "../connection/node-facts.ts";
import { SHARD_KEYS, slotsKey } from "../keys.ts";

export interface RdbLoad {
  /**
   * Absolute path of the data directory, without symbolic links. This process must hold the lock of the directory, and no Redis may
   * run in it.
   */
  readonly dataDir: string;
  readonly content: Readable;
  /** Returns all topics to which a pull source has ever written. `channelNumber` is its internal channel id. */
  readonly listTopics: (channelNumber: number) => Promise<readonly string[]>;
  /** Entries to delete after loading. They were deleted during the snapshot, so the snapshot may still contain them. */
  readonly deleted: readonly { readonly topic: string; readonly entryId: string }[];
  readonly log: Log;
  readonly signal: AbortSignal;
}

/** Timeout per Redis command, in ms. It is long, because a single command may delete many keys. */
const TIMEOUT_MS = 60_000;
const POLL_INTERVAL_MS = 100;
const CURSORS = "inlet:{c.*}:cursor";
const SCAN_COUNT = "1000";

/**
 * Loads an RDB file into the embedded Redis of a data directory and converts it to an append-only file. Raises the epoch of every pull
 * source, so that Redis rejects writes of runs that started before the snapshot. Deletes the leases of shards and slots, so that no worker
 * has to wait until an obsolete lease expires.
 *
 * @returns the number of pull sources
 * @throws Error when Redis does not load the file; the message ends with the Redis log
 */
export async function loadRdb(options: RdbLoad): Promise<{ readonly sources: number }> {
  const { dataDir, content, listTopics: topicsOf, deleted, log, signal } = options;
  const file = join(dataDir, "redis", RDB_FILE);
  await mkdir(join(dataDir, "redis"), { recursive: true, mode: 0o700 });
  await pipeline(content, createWriteStream(file, { mode: 0o600 }), { signal });
  let sources = 0;
  {
    await using redis = await startLocalRedis({ dataDir, log, signal, fromRdb: true });
    await withTemporaryClient({ path: redis.socketPath }, TIMEOUT_MS, async (client) => {
      sources = await fenceSources(client, topicsOf);
      const leases = [SHARD_KEYS.workers, SHARD_KEYS.owners, ...(await findKeys(client, slotsKey("*")))];
      await client.del(...leases);
      for (const { topic, entryId } of deleted) await client.xdel(topic, entryId);
      await client.config("SET", "appendonly", "yes");
      await waitForAppendOnly(client, signal);
    });
  }
  await rm(file);
  return { sources };
}

async function fenceSources(client: Redis, topicsOf: RdbLoad["listTopics"]): Promise<number> {
  const call = (command: string, args: readonly (string | number)[]) => client.call(command, ...args);
  const fence = luaScript({ call }, new URL("../sources/source-fence.lua", import.meta.url));
  const cursors = await findKeys(client, CURSORS);
  for (const cursor of cursors) {
    const number = Number(/\{c\.(\d+)\}/.exec(cursor)?.[1]);
    await fence([cursor, ...(await topicsOf(number))], [number]);
  }
  return cursors.length;
}

async function findKeys(client: Redis, pattern: string): Promise<readonly string[]> {
  const found = new Set<string>();
  for (let at = "0"; ; ) {
    const [next, keys] = await client.scan(at, "MATCH", pattern, "COUNT", SCAN_COUNT);
    for (const key of keys) found.add(key);
    if (next === "0") return [...found];
    at = next;
  }
}

async function waitForAppendOnly(client: Redis, signal: AbortSignal): Promise<void> {
  for (;;) {
    const info = parseInfo(await client.info("persistence"));
    if (info.get("aof_rewrite_in_progress") === "0" && info.get("aof_rewrite_scheduled") === "0") {
      if (info.get("aof_enabled") === "1" && info.get("aof_last_bgrewrite_status") === "ok") return;
      throw new Error("Redis could not write its append-only file. See the Redis log for the reason.");
    }
    await delay(POLL_INTERVAL_MS, undefined, { signal });
  }
}
