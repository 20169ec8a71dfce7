import {
  knownSubscriptionKey,
  pausedSubscriptionKey,
  subscriptionKey,
} from "../../event/subscription-keys.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { replyCode } from "../connection/redis-errors.ts";

/** A consumer group as XINFO describes it. */
export interface GroupInfo {
  readonly name: string;
  readonly consumers: number;
  readonly pending: number;
  readonly lastDeliveredId: string;
  /** Entries not yet delivered; undefined where Redis cannot tell. */
  readonly lag: number | undefined;
}

/** Consumer groups on topics, and the keys by which readers find them. */
export type Groups = ReturnType<typeof createGroups>;

/** Redis time. */
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
    /** Makes the group, and the stream with it, where it is missing; true when made. */
    async ensure(topic: string, group: string, startId: string): Promise<boolean> {
      try {
        await redis.call("xgroup", ["create", topic, group, startId, "mkstream"]);
        return true;
      } catch (error) {
        if (replyCode(error) === "BUSYGROUP") return false;
        throw error;
      }
    },
    /** Sets the group anew; answers how many pending entries were dropped. */
    async reset(topic: string, group: string, startId: string): Promise<number> {
      return Number(await runReset([topic], [group, startId]));
    },
    /**
     * Removes the group and its readers' dead letters; true where the group was there. The stream goes with its last group where it
     * was made for groups only.
     */
    async remove(topic: string, group: string): Promise<boolean> {
      return (await runRemove([topic], [group])) === 1;
    },
    list,
    async find(topic: string, group: string): Promise<GroupInfo | undefined> {
      return (await list(topic)).find(({ name }) => name === group);
    },
    /** The set at `inlet:sub:<id>` by which readers find the topics of a subscription, and the mark that it stands. */
    async setTopics(subscriptionId: string, topics: readonly string[]): Promise<void> {
      await redis.call("set", [knownSubscriptionKey(subscriptionId), ""]);
      await runSet([subscriptionKey(subscriptionId)], topics);
    },
    async removeTopics(subscriptionId: string): Promise<void> {
      await redis.call("unlink", [knownSubscriptionKey(subscriptionId)]);
      await redis.call("unlink", [subscriptionKey(subscriptionId)]);
      await redis.call("unlink", [pausedSubscriptionKey(subscriptionId)]);
    },
    /** Tells readers that ask (`inlet-consumer`) to wait, or to go on. */
    async setPaused(subscriptionId: string, isPaused: boolean): Promise<void> {
      const key = pausedSubscriptionKey(subscriptionId);
      await (isPaused ? redis.call("set", [key, ""]) : redis.call("unlink", [key]));
    },
  };
}

/** The groups of an `XINFO GROUPS` reply. */
export function parseGroups(reply: unknown): readonly GroupInfo[] {
  return (reply as unknown[][]).map((pairs) => {
    const fields = pairsOf(pairs);
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

/** Name, value, name, value …, as Redis answers maps. */
export const pairsOf = (reply: readonly unknown[]): ReadonlyMap<unknown, unknown> =>
  new Map(reply.flatMap((name, i) => (i % 2 ? [] : [[name, reply[i + 1]]])));

/** XINFO says it in words. */
export const isNoSuchKey = (error: unknown): boolean =>
  error instanceof Error && error.message.includes("no such key");
