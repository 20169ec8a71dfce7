import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import type { RetainedTopic } from "./retention.ts";

export interface GroupStatus {
  readonly name: string;
  /**
   * Whether unhandled entries may soon be trimmed: the oldest has passed `RISK_FRACTION` of the topic's maximum age, entries or
   * bytes.
   *
   * The number of entries after a pending entry is estimated.
   */
  readonly isAtRisk: boolean;
  /** Number of undelivered entries, estimated if Redis does not know it. */
  readonly lag: number;
  /** Age of the oldest undelivered entry in ms, 0 if there is none. */
  readonly lagMs: number;
  /** Age of the oldest undelivered or unacknowledged entry in ms, 0 if there is none. */
  readonly unhandledMs: number;
  readonly pending: number;
  /** Number of dead letters of readers. Dead letters of HTTP handlers are stored elsewhere and not counted. */
  readonly deadLetters: number;
}

/** Inspects the consumer groups of a topic. Returns an empty list if the stream does not exist. */
export type InspectGroups = (topic: RetainedTopic) => Promise<readonly GroupStatus[]>;

const RISK_FRACTION = 0.8;
const MEMORY_SAMPLES = 10;
/** Maximum number of consumer groups per script call, so that a call blocks Redis for a few milliseconds at most. */
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
