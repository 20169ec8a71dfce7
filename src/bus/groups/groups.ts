import {
  deadLettersKey,
  knownSubscriptionKey,
  pausedSubscriptionKey,
  subscriptionKey,
} from "../../event/subscription-keys.ts";
import type { RedisBus } from "../connection/redis.ts";
import { replyCode } from "../connection/redis-errors.ts";
import { loadScript, runScript } from "../scripts.ts";

/** A consumer group as XINFO describes it. */
export interface GroupInfo {
  readonly name: string;
  readonly consumers: number;
  readonly pending: number;
  readonly lastDeliveredId: string;
  /** Entries not yet delivered; undefined where Redis cannot tell. */
  readonly lag: number | undefined;
}

export interface Groups {
  /**
   * Makes the group where it is missing, and the stream with it; true when made. Leaves an existing one
   * alone.
   */
  ensure(topic: string, group: string, startId: string): Promise<boolean>;
  /** Sets the group anew; answers how many pending entries were dropped. */
  reset(topic: string, group: string, startId: string): Promise<number>;
  /** Removes the group and its readers' dead letters; true where the group was there. */
  remove(topic: string, group: string): Promise<boolean>;
  list(topic: string): Promise<readonly GroupInfo[]>;
  find(topic: string, group: string): Promise<GroupInfo | undefined>;
  /** The set at `inlet:sub:<id>` by which readers find the topics of a subscription, and the mark that it stands. */
  setTopics(subscriptionId: string, topics: readonly string[]): Promise<void>;
  removeTopics(subscriptionId: string): Promise<void>;
  /** Tells readers that ask (`inlet-consumer`) to wait, or to go on. */
  setPaused(subscriptionId: string, isPaused: boolean): Promise<void>;
}

/** Redis time. */
export async function readRedisTimeMs(redis: RedisBus): Promise<number> {
  const [seconds, microseconds] = (await redis.call("time", [])) as [string, string];
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}

export function createGroups({ redis }: { readonly redis: RedisBus }): Groups {
  const resetScript = loadScript(new URL("./group-reset.lua", import.meta.url));
  const setScript = loadScript(new URL("./set-replace.lua", import.meta.url));

  const list = async (topic: string): Promise<readonly GroupInfo[]> => {
    try {
      return parseGroups(await redis.call("xinfo", ["groups", topic]));
    } catch (error) {
      if (isNoSuchKey(error)) return [];
      throw error;
    }
  };

  return {
    async ensure(topic, group, startId) {
      try {
        await redis.call("xgroup", ["create", topic, group, startId, "mkstream"]);
        return true;
      } catch (error) {
        if (replyCode(error) === "BUSYGROUP") return false;
        throw error;
      }
    },
    async reset(topic, group, startId) {
      return Number(await runScript(redis, resetScript, [topic], [group, startId]));
    },
    async remove(topic, group) {
      await redis.call("unlink", [deadLettersKey(topic, group)]);
      try {
        return (await redis.call("xgroup", ["destroy", topic, group])) === 1;
      } catch (error) {
        if (isNoSuchKey(error)) return false;
        throw error;
      }
    },
    list,
    async find(topic, group) {
      return (await list(topic)).find(({ name }) => name === group);
    },
    async setTopics(subscriptionId, topics) {
      await redis.call("set", [knownSubscriptionKey(subscriptionId), ""]);
      await runScript(redis, setScript, [subscriptionKey(subscriptionId)], topics);
    },
    async removeTopics(subscriptionId) {
      await redis.call("unlink", [knownSubscriptionKey(subscriptionId)]);
      await redis.call("unlink", [subscriptionKey(subscriptionId)]);
      await redis.call("unlink", [pausedSubscriptionKey(subscriptionId)]);
    },
    async setPaused(subscriptionId, isPaused) {
      const key = pausedSubscriptionKey(subscriptionId);
      await (isPaused ? redis.call("set", [key, ""]) : redis.call("unlink", [key]));
    },
  };
}

/** The groups of an `XINFO GROUPS` reply. */
export function parseGroups(reply: unknown): readonly GroupInfo[] {
  return (reply as unknown[][]).map((pairs) => {
    const fields = new Map<unknown, unknown>();
    for (let i = 0; i < pairs.length; i += 2) fields.set(pairs[i], pairs[i + 1]);
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

/** XINFO and XGROUP say it in words: "no such key", "requires the key to exist". */
export const isNoSuchKey = (error: unknown): boolean =>
  error instanceof Error && /no such key|requires the key to exist/.test(error.message);
