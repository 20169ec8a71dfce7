import { luaScript } from "../../lib/lua.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { chunkTopics } from "../../lib/stream-chunks.ts";
import type { RedisBus } from "../connection/redis.ts";
import type { ListedId } from "./entry-place.ts";
import { createEntryReader } from "./entry-reader.ts";

/** Range in the syntax of XRANGE: `-`, `+`, an entry id, or milliseconds. A leading `(` excludes the id itself. */
export interface EntryRange {
  readonly from: string;
  readonly to: string;
}

/** The first entry ids of a range. `ended` is true if the range has no more ids. */
export interface EntryIds {
  readonly ids: readonly ListedId[];
  readonly ended: boolean;
}

/** Range of a topic whose ids are listed, and their maximum number. */
export interface TopicRange extends EntryRange {
  readonly topic: string;
  readonly limit: number;
}

/** Newest entry of a topic in a range. */
export interface NewestEntry {
  readonly topic: string;
  /** `undefined` if the range is empty. */
  readonly newest: ListedId | undefined;
  /** Number of entries of the whole topic. */
  readonly count: number;
}

/** Lists the entry ids of topics without loading the events themselves, and reads events by these ids. */
export type EntryIndex = ReturnType<typeof createEntryIndex>;

/** Maximum number of ids per call, so that a call blocks Redis for a few milliseconds at most. */
export const MAX_IDS_AT_ONCE = 500;
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
      for (let i = 0; i + 2 < values.length; i += 3) {
        const [entryId, bytes, count] = values.slice(i, i + 3);
        const newest = entryId === "" ? undefined : { entryId: String(entryId), bytes: Number(bytes) };
        found.push({ topic: rest[i / 3] ?? "", newest, count: Number(count) });
      }
    }
    return found;
  }

  async function readIds(
    ranges: readonly TopicRange[],
    isNewestFirst: boolean,
  ): Promise<readonly EntryIds[]> {
    const found: EntryIds[] = [];
    while (found.length < ranges.length) {
      const rest = ranges.slice(found.length);
      const args = rest.flatMap(({ from, to, limit }) => [from, to, limit]);
      const limits = [isNewestFirst ? 1 : 0, MAX_IDS_AT_ONCE, MAX_BYTES_AT_ONCE];
      const reply = await runLua(
        rest.map(({ topic }) => topic),
        [...limits, ...args],
      );
      for (const ids of reply as readonly (readonly (string | number)[])[]) found.push(parseIds(ids));
    }
    return found;
  }

  async function listIds(ranges: readonly TopicRange[], isNewestFirst = false): Promise<readonly EntryIds[]> {
    const rangeOf = new Map(ranges.map((range) => [range.topic, range]));
    const chunks = chunkTopics([...rangeOf.keys()], redis.isCluster);
    const found = new Map<string, EntryIds>();
    await mapBounded(chunks, CALLS_AT_ONCE, async (topics) => {
      const some = topics.flatMap((topic) => rangeOf.get(topic) ?? []);
      for (const [n, ids] of (await readIds(some, isNewestFirst)).entries()) found.set(topics[n] ?? "", ids);
    });
    return ranges.map(({ topic }) => found.get(topic) ?? NO_IDS);
  }

  return {
    /**
     * Lists up to `limit` entries of each range, oldest or newest first. Returns fewer entries, but at least one, if there are many or large
     * entries. The topics must be distinct. A call reads up to 64 topics, in a Cluster only those of one slot.
     */
    listIds,
    /** Returns the newest entry of each topic from `from` to `endOf(topic)`. A call reads up to 64 topics, in a Cluster only those of one slot. */
    async listNewest(
      topics: readonly string[],
      endOf: (topic: string) => string,
      from: string,
    ): Promise<readonly NewestEntry[]> {
      const chunks = chunkTopics(topics, redis.isCluster);
      return (await mapBounded(chunks, CALLS_AT_ONCE, (some) => readNewest(some, endOf, from))).flat();
    },
    count: async (topic: string): Promise<number> => Number(await redis.call("xlen", [topic])),
    read: createEntryReader({ redis }),
  };
}

const NO_IDS: EntryIds = { ids: [], ended: true };

function parseIds([ended, ...pairs]: readonly (string | number)[]): EntryIds {
  const ids: ListedId[] = [];
  for (let i = 0; i + 1 < pairs.length; i += 2)
    ids.push({ entryId: String(pairs[i]), bytes: Number(pairs[i + 1]) });
  return { ids, ended: ended === 1 };
}
