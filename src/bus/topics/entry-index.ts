import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";

/** As XRANGE takes them: `-`, `+`, an id, milliseconds; `(` before an id excludes it. */
export interface EntryRange {
  readonly from: string;
  readonly to: string;
}

/** The first ids of a range; `ended` when there are no more. */
export interface EntryIds {
  readonly ids: readonly string[];
  readonly ended: boolean;
}

/** The entries of a topic by id, without their payloads: those stay in Redis. */
export type EntryIndex = ReturnType<typeof createEntryIndex>;

/** Keeps Redis from answering others for some milliseconds at most. */
const MAX_IDS_AT_ONCE = 500;
const MAX_BYTES_AT_ONCE = 8 * 1024 * 1024;

export function createEntryIndex({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./entry-ids.lua", import.meta.url));
  return {
    /**
     * The oldest entries of a range, or the newest, the newest first; at most `limit`, and fewer, but at least one, where there are many
     * or they are large.
     */
    async listIds(
      topic: string,
      { from, to }: EntryRange,
      limit: number,
      newestFirst = false,
    ): Promise<EntryIds> {
      const most = Math.min(limit, MAX_IDS_AT_ONCE);
      const reply = await runLua([topic], [from, to, most, MAX_BYTES_AT_ONCE, newestFirst ? 1 : 0]);
      const [ended, ...ids] = reply as [number, ...string[]];
      return { ids, ended: ended === 1 };
    },
    count: async (topic: string): Promise<number> => Number(await redis.call("xlen", [topic])),
  };
}
