import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import type { RetainedTopic } from "./retention.ts";

/**
 * The consumer groups of a topic whose oldest unhandled entry, undelivered or pending, is past `part` of its age, of the entries or
 * of the bytes that the topic keeps. How much stands behind a pending entry is estimated.
 */
export type FindAtRisk = (topic: RetainedTopic) => Promise<readonly string[]>;

const PART = 0.8;
const MEMORY_SAMPLES = 10;
/** Keeps Redis from answering others for some milliseconds at most. */
const GROUPS_AT_ONCE = 200;

export function createFindAtRisk({ redis }: { readonly redis: RedisBus }): FindAtRisk {
  const runLua = luaScript(redis, new URL("./retention-risk.lua", import.meta.url));
  return async ({ topic, maxAgeSeconds, maxEntries, maxBytes }) => {
    const limits = [maxAgeSeconds * 1000, maxEntries, maxBytes, PART, MEMORY_SAMPLES];
    const found: string[] = [];
    for (let first = 1; first !== 0; ) {
      const reply = await runLua([topic], [...limits, first, GROUPS_AT_ONCE]);
      const [next, ...names] = reply as [number, ...string[]];
      found.push(...names);
      first = next;
    }
    return found;
  };
}
