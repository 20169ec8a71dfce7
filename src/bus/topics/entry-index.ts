import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";

/** Range in XRANGE syntax: `-`, `+`, an entry id, or milliseconds. `(` before an id excludes that id. */
export interface EntryRange {
  readonly from: string;
  readonly to: string;
}

/** The first ids of a range. `ended` is true if these are all ids of the range. */
export interface EntryIds {
  readonly ids: readonly string[];
  readonly ended: boolean;
}

/** Lists the entry ids of topics without transferring the payloads. */
export type EntryIndex = ReturnType<typeof createEntryIndex>;

/** Limits of one call, so that it blocks Redis for a few milliseconds at most. */
const MAX_IDS_AT_ONCE = 500;
const MAX_BYTES_AT_ONCE = 8 * 1024 * 1024;

export function createEntryIndex({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./entry-ids.lua", import.meta.url));
  return {
    /**
     * Lists the oldest entries of a range, or the newest entries in reverse order. Returns at most `limit` ids. Returns fewer ids, but at
     * least one, if the range has many or large entries.
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
