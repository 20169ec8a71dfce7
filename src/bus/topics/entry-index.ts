import { luaScript } from "../../lib/lua.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { chunkTopics } from "../../lib/stream-chunks.ts";
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

/** Newest entry of a topic in a range. */
export interface NewestEntry {
  readonly topic: string;
  /** `undefined` if the range is empty. */
  readonly entryId: string | undefined;
  /** Number of entries of the whole topic. */
  readonly count: number;
}

/** Lists the entry ids of topics without loading the events themselves. */
export type EntryIndex = ReturnType<typeof createEntryIndex>;

/** Maximum number of ids per call, so that a call blocks Redis for a few milliseconds at most. */
const MAX_IDS_AT_ONCE = 500;
const CALLS_AT_ONCE = 8;
const MAX_BYTES_AT_ONCE = 8 * 1024 * 1024;

export function createEntryIndex({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./entry-ids.lua", import.meta.url));
  const runNewest = luaScript(redis, new URL("./newest-ids.lua", import.meta.url));

  async function readNewest(
    topics: readonly string[],
    endOf: (topic: string) => string,
    from: string,
  ): Promise<readonly NewestEntry[]> {
    const found: NewestEntry[] = [];
    while (found.length < topics.length) {
      const rest = topics.slice(found.length);
      const reply = await runNewest(rest, [from, MAX_BYTES_AT_ONCE, ...rest.map(endOf)]);
      const values = reply as readonly (string | number)[];
      for (let i = 0; i + 1 < values.length; i += 2) {
        const entryId = values[i] === "" ? undefined : String(values[i]);
        found.push({ topic: rest[i / 2] ?? "", entryId, count: Number(values[i + 1]) });
      }
    }
    return found;
  }

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
    /** Returns the newest entry of each topic from `from` to `endOf(topic)`. A call reads up to 64 topics, or one topic in a Cluster. */
    async listNewest(
      topics: readonly string[],
      endOf: (topic: string) => string,
      from: string,
    ): Promise<readonly NewestEntry[]> {
      const chunks = chunkTopics(topics, redis.isCluster);
      return (await mapBounded(chunks, CALLS_AT_ONCE, (some) => readNewest(some, endOf, from))).flat();
    },
    count: async (topic: string): Promise<number> => Number(await redis.call("xlen", [topic])),
  };
}
