import {
  knownSubscriptionKey,
  pausedSubscriptionKey,
  type ReaderError,
  readerErrorKey,
  subscriptionKey,
} from "../../event/subscription-keys.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { replyCode } from "../connection/redis-errors.ts";

export interface GroupInfo {
  readonly name: string;
  readonly consumers: number;
  readonly pending: number;
  readonly lastDeliveredId: string;
  /** Number of entries not yet delivered to the group. `undefined` if Redis does not know the number. */
  readonly lag: number | undefined;
}

export type Groups = ReturnType<typeof createGroups>;

export async function readRedisTimeMs(redis: Pick<RedisBus, "call">): Promise<number> {
  const [seconds, microseconds] = (await redis.call("time", [])) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

export function createGroups({ redis }: { readonly redis: RedisBus }) {
  const runRemove = luaScript(redis, new URL("./group-remove.lua", import.meta.url));
  const runReset = luaScript(redis, new URL("./group-reset.lua", import.meta.url));
  const runSet = luaScript(redis, new URL("./set-replace.lua", import.meta.url));

  const list = async (topic: string): Promise<readonly GroupInfo[]> => {
    try {
      return parseGroups(await redis.call("xinfo", ["groups", topic]));
    } catch (error) {
      if (isNoSuchKey(error)) return [];
      throw error;
    }
  };

  return {
    /** Creates a consumer group, and its stream if needed. Returns false if the group already exists. */
    async ensure(topic: string, group: string, startId: string): Promise<boolean> {
      try {
        await redis.call("xgroup", ["create", topic, group, startId, "mkstream"]);
        return true;
      } catch (error) {
        if (replyCode(error) === "BUSYGROUP") return false;
        throw error;
      }
    },
    /** Returns the number of dropped pending entries. */
    async reset(topic: string, group: string, startId: string): Promise<number> {
      return Number(await runReset([topic], [group, startId]));
    },
    /**
     * Deletes a consumer group with its dead letters, and returns true if it existed. Also deletes the stream if it has no other
     * group and never held an entry.
     */
    async remove(topic: string, group: string): Promise<boolean> {
      return (await runRemove([topic], [group])) === 1;
    },
    list,
    async find(topic: string, group: string): Promise<GroupInfo | undefined> {
      return (await list(topic)).find(({ name }) => name === group);
    },
    /**
     * Replaces the set `inlet:sub:<id>`, from which readers learn the topics of a subscription. Also marks the subscription as
     * existing.
     */
    async setTopics(subscriptionId: string, topics: readonly string[]): Promise<void> {
      await redis.call("set", [knownSubscriptionKey(subscriptionId), ""]);
      await runSet([subscriptionKey(subscriptionId)], topics);
    },
    async removeTopics(subscriptionId: string): Promise<void> {
      await redis.call("unlink", [knownSubscriptionKey(subscriptionId)]);
      await redis.call("unlink", [subscriptionKey(subscriptionId)]);
      await redis.call("unlink", [pausedSubscriptionKey(subscriptionId)]);
      await redis.call("unlink", [readerErrorKey(subscriptionId)]);
    },
    /** Returns the last error that a reader of the subscription reported, or `undefined` if there is none. */
    async findReaderError(subscriptionId: string): Promise<ReaderError | undefined> {
      const key = readerErrorKey(subscriptionId);
      const [at, message] = (await redis.call("hmget", [key, "at", "message"])) as (string | null)[];
      return at && message && Number.isFinite(Date.parse(at)) ? { at, message } : undefined;
    },
    /** Pauses or resumes the readers of a subscription. Readers without `inlet-consumer` ignore the pause. */
    async setPaused(subscriptionId: string, isPaused: boolean): Promise<void> {
      const key = pausedSubscriptionKey(subscriptionId);
      await (isPaused ? redis.call("set", [key, ""]) : redis.call("unlink", [key]));
    },
  };
}

export function parseGroups(reply: unknown): readonly GroupInfo[] {
  return (reply as unknown[][]).map((pairs) => {
    const fields = parsePairs(pairs);
    const lag = fields.get("lag");
    return {
      name: String(fields.get("name")),
      consumers: Number(fields.get("consumers")),
      pending: Number(fields.get("pending")),
      lastDeliveredId: String(fields.get("last-delivered-id")),
      lag: typeof lag === "number" ? lag : undefined,
    };
  });
}

/** Parses a RESP2 map, which is a flat list of alternating names and values. */
export const parsePairs = (reply: readonly unknown[]): ReadonlyMap<unknown, unknown> =>
  new Map(reply.flatMap((name, i) => (i % 2 ? [] : [[name, reply[i + 1]]])));

/** Returns true if XINFO failed because the key is missing. Checks the message, because the error has only the generic code ERR. */
export const isNoSuchKey = (error: unknown): boolean =>
  error instanceof Error && error.message.includes("no such key");
