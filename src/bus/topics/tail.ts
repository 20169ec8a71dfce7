import { luaScript } from "../../lib/lua.ts";
import { mapBounded } from "../../lib/map-bounded.ts";
import { chunkTopics } from "../../lib/stream-chunks.ts";
import type { RedisBus } from "../connection/redis.ts";
import { readRedisTimeMs } from "../groups/groups.ts";
import { parseEntry, type RawEntry, type TopicEntry } from "./topics.ts";

export interface TailLimits {
  readonly entries: number;
  /** Maximum bytes of entries. The entry that exceeds this limit is still returned, as the last one. */
  readonly bytes: number;
}

export interface TailRead {
  /** Redis time in ms when the first call started. If `more` is false, all entries added before this time were read or deleted. */
  readonly timeMs: number;
  readonly more: boolean;
}

export type Tail = ReturnType<typeof createTail>;

const CALLS_AT_ONCE = 4;

export function createTail({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./tail.lua", import.meta.url));
  return {
    /**
     * Calls `onEntry` for each entry after the given ids, in order within each topic.
     *
     * A script call reads at most 64 topics, and the limits apply to each call.
     *
     * @throws UnavailableError
     */
    async read(
      after: readonly (readonly [topic: string, entryId: string])[],
      { entries, bytes }: TailLimits,
      onEntry: (topic: string, entry: TopicEntry) => void,
    ): Promise<TailRead> {
      const ids = new Map(after);
      const chunks = chunkTopics([...ids.keys()], redis.isCluster);
      if (chunks.length === 0) return { timeMs: await readRedisTimeMs(redis), more: false };
      const reads = await mapBounded(chunks, CALLS_AT_ONCE, async (topics): Promise<TailRead> => {
        const args = [entries, bytes, ...topics.map((topic) => ids.get(topic) ?? "0-0")];
        const reply = (await runLua(topics, args)) as unknown[];
        for (let i = 2; i + 2 < reply.length; i += 3) {
          const topic = topics[Number(reply[i]) - 1] ?? "";
          onEntry(topic, parseEntry([reply[i + 1], reply[i + 2]] as unknown as RawEntry));
        }
        return { timeMs: Number(reply[0]), more: reply[1] === 1 };
      });
      return {
        timeMs: Math.min(...reads.map(({ timeMs }) => timeMs)),
        more: reads.some(({ more }) => more),
      };
    },
  };
}
