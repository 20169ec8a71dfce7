import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import type { RetainedTopic } from "./retention.ts";

/** A consumer group, as far as it is from having handled all of its topic. */
export interface GroupStatus {
  readonly name: string;
  /**
   * Its oldest unhandled entry, undelivered or pending, is past `part` of its age, of the entries or of the bytes that the topic
   * keeps. How much stands behind a pending entry is estimated.
   */
  readonly isAtRisk: boolean;
  /** Entries not delivered yet; estimated where Redis does not know. */
  readonly lag: number;
  /** The age of the oldest of them; 0 where there is none. */
  readonly lagMs: number;
  /** The age of the oldest that is not delivered or pending. */
  readonly unhandledMs: number;
  readonly pending: number;
  /** Those of its readers. */
  readonly deadLetters: number;
}

/** All groups of a topic; none where there is no such stream. */
export type InspectGroups = (topic: RetainedTopic) => Promise<readonly GroupStatus[]>;

const RISK_FRACTION = 0.8;
const MEMORY_SAMPLES = 10;
/** Keeps Redis from answering others for some milliseconds at most. */
const GROUPS_PER_CALL = 200;

type GroupReply = readonly [string, 0 | 1, number, number, number, number, number];
const FIELDS: GroupReply["length"] = 7;

export function createInspectGroups({ redis }: { readonly redis: RedisBus }): InspectGroups {
  const runLua = luaScript(redis, new URL("./retention-risk.lua", import.meta.url));
  return async ({ topic, maxAgeSeconds, maxEntries, maxBytes }) => {
    const limits = [maxAgeSeconds * 1000, maxEntries, maxBytes, RISK_FRACTION, MEMORY_SAMPLES];
    const found: GroupStatus[] = [];
    for (let first = 1; first !== 0; ) {
      const reply = await runLua([topic], [...limits, first, GROUPS_PER_CALL]);
      const [next, ...groups] = reply as [number, ...(string | number)[]];
      for (let i = 0; i < groups.length; i += FIELDS) {
        const one = groups.slice(i, i + FIELDS) as unknown as GroupReply;
        const [name, risk, lag, lagMs, unhandledMs, pending, deadLetters] = one;
        found.push({ name, isAtRisk: risk === 1, lag, lagMs, unhandledMs, pending, deadLetters });
      }
      first = next;
    }
    return found;
  };
}
