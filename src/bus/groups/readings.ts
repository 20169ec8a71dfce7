import { deadLettersKey } from "../../event/subscription-keys.ts";
import { luaScript } from "../../lib/lua.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import type { RedisBus } from "../connection/redis.ts";
import { compareEntryIds } from "../entry-id.ts";
import { type Groups, isNoSuchKey, pairsOf } from "./groups.ts";

/**
 * How far a group is with one entry. `pending`: a reader has it, `setAside`: its readers did not take it after all attempts,
 * `acknowledged`: it is done with, or was handed on to be sent once more.
 */
export type GroupReading =
  | { readonly group: string; readonly state: "unread" | "setAside" | "acknowledged" }
  | {
      readonly group: string;
      readonly state: "pending";
      readonly reader: string;
      readonly idleMs: number;
      /** How often it was given to a reader. */
      readonly deliveries: number;
    };

/** A reader of a group as Redis knows it. */
export interface GroupReader {
  readonly name: string;
  readonly pending: number;
  /** Since it last asked. */
  readonly idleMs: number;
}

export type Readings = ReturnType<typeof createReadings>;

/** Of the newest that readers have set aside; their bytes keep Redis from answering others for some milliseconds at most. */
const MAX_LETTERS = 500;
const MAX_LETTER_BYTES = 8 * 1024 * 1024;
const CONCURRENCY = 16;

/** Who has read what, as asked for this moment. All throw UnavailableError. */
export function createReadings({
  redis,
  groups,
}: {
  readonly redis: RedisBus;
  readonly groups: Pick<Groups, "list">;
}) {
  const runIsSetAside = luaScript(redis, new URL("./is-set-aside.lua", import.meta.url));

  async function isSetAside(topic: string, group: string, entryId: string): Promise<boolean> {
    const key = deadLettersKey(topic, group);
    return (await runIsSetAside([key], [entryId, MAX_LETTERS, MAX_LETTER_BYTES])) === 1;
  }

  return {
    /** By each group that is on the topic. */
    async ofEntry(topic: string, entryId: string): Promise<readonly GroupReading[]> {
      const found = await groups.list(topic);
      return mapBounded(found, CONCURRENCY, async ({ name: group, lastDeliveredId }) => {
        if (compareEntryIds(entryId, lastDeliveredId) > 0) return { group, state: "unread" };
        const reply = await redis.call("xpending", [topic, group, entryId, entryId, 1]);
        const [pending] = reply as [string, string, number, number][];
        if (pending) {
          const [, reader, idleMs, deliveries] = pending;
          return { group, state: "pending", reader, idleMs, deliveries };
        }
        return { group, state: (await isSetAside(topic, group, entryId)) ? "setAside" : "acknowledged" };
      });
    },
    /** The readers of a group on one topic; none where it is not there. */
    async readersOf(topic: string, group: string): Promise<readonly GroupReader[]> {
      try {
        const reply = (await redis.call("xinfo", ["consumers", topic, group])) as unknown[][];
        return reply.map((pairs) => {
          const fields = pairsOf(pairs);
          const [pending, idleMs] = [Number(fields.get("pending")), Number(fields.get("idle"))];
          return { name: String(fields.get("name")), pending, idleMs };
        });
      } catch (error) {
        if (isNoSuchKey(error) || isNoGroup(error)) return [];
        throw error;
      }
    },
  };
}

const isNoGroup = (error: unknown): boolean => error instanceof Error && error.message.includes("NOGROUP");
