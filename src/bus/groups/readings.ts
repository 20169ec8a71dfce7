import { deadLettersKey } from "../../event/subscription-keys.ts";
import { luaScript } from "../../lib/lua.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import type { RedisBus } from "../connection/redis.ts";
import { compareEntryIds } from "../entry-id.ts";
import { type Groups, isNoSuchKey, parsePairs } from "./groups.ts";

/**
 * State of a stream entry in a consumer group. `pending` means taken by a reader, and `setAside` a dead letter of the group's readers.
 * `acknowledged` means handled, or sent again from the dead letters.
 */
export type GroupProgress =
  | { readonly group: string; readonly state: "unread" | "setAside" | "acknowledged" }
  | {
      readonly group: string;
      readonly state: "pending";
      readonly reader: string;
      readonly idleMs: number;
      /** Number of times that Redis delivered this entry to any reader of the group. */
      readonly deliveries: number;
    };

/** A reader in a consumer group, which Redis calls a consumer. */
export interface GroupReader {
  readonly name: string;
  readonly pending: number;
  /** Time since the reader's last request to Redis. */
  readonly idleMs: number;
}

export type GroupProgressReader = ReturnType<typeof createGroupProgressReader>;

/** Maximum number of dead letters that one search reads, newest first, so that it blocks Redis for a few milliseconds at most. */
const MAX_DEAD_LETTERS = 500;
const MAX_DEAD_LETTER_BYTES = 8 * 1024 * 1024;
const CONCURRENCY = 16;

/** All methods throw UnavailableError. */
export function createGroupProgressReader({
  redis,
  groups,
}: {
  readonly redis: RedisBus;
  readonly groups: Pick<Groups, "list">;
}) {
  const runIsDeadLettered = luaScript(redis, new URL("./is-set-aside.lua", import.meta.url));

  async function isDeadLettered(topic: string, group: string, entryId: string): Promise<boolean> {
    const key = deadLettersKey(topic, group);
    return (await runIsDeadLettered([key], [entryId, MAX_DEAD_LETTERS, MAX_DEAD_LETTER_BYTES])) === 1;
  }

  return {
    async readEntryProgress(topic: string, entryId: string): Promise<readonly GroupProgress[]> {
      const found = await groups.list(topic);
      return mapBounded(found, CONCURRENCY, async ({ name: group, lastDeliveredId }) => {
        if (compareEntryIds(entryId, lastDeliveredId) > 0) return { group, state: "unread" };
        const reply = await redis.call("xpending", [topic, group, entryId, entryId, 1]);
        const [pending] = reply as [string, string, number, number][];
        if (pending) {
          const [, reader, idleMs, deliveries] = pending;
          return { group, state: "pending", reader, idleMs, deliveries };
        }
        return { group, state: (await isDeadLettered(topic, group, entryId)) ? "setAside" : "acknowledged" };
      });
    },
    /** Lists the readers of a group. The list is empty if the group does not exist. */
    async listReaders(topic: string, group: string): Promise<readonly GroupReader[]> {
      try {
        const reply = (await redis.call("xinfo", ["consumers", topic, group])) as unknown[][];
        return reply.map((pairs) => {
          const fields = parsePairs(pairs);
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
