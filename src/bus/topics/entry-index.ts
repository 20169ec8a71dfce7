import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";

/** Range in the syntax of XRANGE: `-`, `+`, an entry id, or milliseconds. A leading `(` excludes the id itself. */
export interface EntryRange {
  readonly from: string;
  readonly to: string;
}

/** The first entry ids of a range. `ended` is true if the range has no more ids. */
export interface EntryIds {
  readonly ids: readonly string[];
  readonly ended: boolean;
}

/** Lists the entry ids of topics without loading the events themselves. */
export type EntryIndex = ReturnType<typeof createEntryIndex>;

/** Maximum number of ids per call, so that a call blocks Redis for a few milliseconds at most. */
const MAX_IDS_AT_ONCE = 500;
const MAX_BYTES_AT_ONCE = 8 * 1024 * 1024;

export function createEntryIndex({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./entry-ids.lua", import.meta.url));
  return {
    /**
     * Lists up to `limit` entries of a range, oldest or newest first. Returns fewer entries, but at least one, if the range has
     * many or large entries.
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
