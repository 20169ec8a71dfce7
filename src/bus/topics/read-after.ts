import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { compareEntryIds } from "../entry-id.ts";
import { parseEntry, type RawEntry, type TopicEntry } from "./topics.ts";

/** Position of a reader in one topic, without a consumer group. */
export interface TopicPosition {
  /** Id of the last entry that the reader has received. */
  readonly after: string;
  /**
   * Number of entries that were appended to the topic up to `after`, or fewer if the exact number is unknown. `undefined` if the number
   * was not counted.
   */
  readonly appended: number | undefined;
}

export interface ReadAfter {
  /** Entries after the previous position, each with the position after it. */
  readonly entries: readonly (TopicEntry & { readonly position: TopicPosition })[];
  /** Position after `entries`. */
  readonly position: TopicPosition;
  /**
   * Whether entries after the previous position were removed before the reader received them, by retention, a storage limit or a privacy
   * deletion. May also be true for a removal that the preceding read has reported.
   */
  readonly isTruncated: boolean;
  /** Whether the topic has more entries after `position`. */
  readonly more: boolean;
}

/** Entries that are missing in a topic, because they were trimmed or deleted. */
export interface RemovedEntries {
  readonly count: number;
  /** Id of the first entry that is stored. If there is none, that of the last entry. */
  readonly firstStored: string;
  /** Greatest id that was deleted one by one, such as by a privacy deletion. */
  readonly maxDeleted: string;
}

export type TopicReader = ReturnType<typeof createTopicReader>;

/** Creates a reader that reports removed entries. Redis counts appended entries, so a removal cannot be missed. */
export function createTopicReader({ redis }: { readonly redis: RedisBus }) {
  const runLua = luaScript(redis, new URL("./read-after.lua", import.meta.url));
  return {
    /** Returns the position after the last entry. @throws UnavailableError */
    async findEnd(topic: string): Promise<TopicPosition> {
      const [appended, , , last] = (await runLua([topic], ["$", 0, 0])) as unknown[];
      return { after: String(last), appended: Number(appended) };
    },
    /** @throws UnavailableError */
    async findRemoved(topic: string): Promise<RemovedEntries> {
      const [appended, stored, maxDeleted, , , first] = (await runLua([topic], ["$", 0, 0])) as unknown[];
      return {
        count: Number(appended) - Number(stored),
        firstStored: String(first),
        maxDeleted: String(maxDeleted),
      };
    },
    /**
     * Reads entries after a position.
     *
     * @param limits.bytes maximum bytes of entries. The entry that exceeds it is still returned, as the last one
     * @throws UnavailableError
     */
    async readAfter(
      topic: string,
      { after, appended: known }: TopicPosition,
      limits: { readonly entries: number; readonly bytes: number },
    ): Promise<ReadAfter> {
      const reply = (await runLua([topic], [after, limits.entries, limits.bytes])) as unknown[];
      const [appended, stored, maxDeleted] = [Number(reply[0]), Number(reply[1]), String(reply[2])];
      const [last, first] = [String(reply[3]), String(reply[5])];
      const removed = appended - stored;
      const isDeleted = compareEntryIds(maxDeleted, after) > 0;
      const isRecreated = known === undefined ? compareEntryIds(last, after) < 0 : appended < known;
      // Trimming removes the oldest entries first. More removals than received entries therefore mean that an unread entry was trimmed.
      // Without that number, an unread entry may have been trimmed unless the last received one, or an older one, still exists.
      const isTrimmed =
        known === undefined
          ? removed > 0 && compareEntryIds(first, after) > 0 && compareEntryIds(last, after) > 0
          : removed > known;
      const isTruncated = isTrimmed || isDeleted || isRecreated;
      let received = numberOf(known, { appended, removed, isUncertain: isDeleted || isRecreated });
      const entries: ReadAfter["entries"][number][] = [];
      for (let i = 6; i + 1 < reply.length; i += 2) {
        const entry = parseEntry([reply[i], reply[i + 1]] as unknown as RawEntry);
        if (received !== undefined) received++;
        entries.push({ ...entry, position: { after: entry.entryId, appended: received } });
      }
      const more = reply[4] === 1;
      const end = entries.at(-1)?.position ?? { after, appended: received };
      const position = more ? end : { after: maxOf(end.after, last), appended };
      return { entries, position, isTruncated, more };
    },
  };
}

/** Returns the number of entries that were appended up to the first entry to return, without that entry. */
function numberOf(
  known: number | undefined,
  {
    appended,
    removed,
    isUncertain,
  }: { readonly appended: number; readonly removed: number; readonly isUncertain: boolean },
): number | undefined {
  if (known === undefined) return undefined;
  return isUncertain ? Math.min(known, appended) : Math.max(known, removed);
}

const maxOf = (a: string, b: string): string => (compareEntryIds(a, b) < 0 ? b : a);
