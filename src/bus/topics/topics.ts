import { isRecovered, isTestEvent } from "../../event/cloud-event.ts";
import { deadLettersKey } from "../../event/subscription-keys.ts";
import { luaScript } from "../../lib/lua.ts";
import type { RedisBus } from "../connection/redis.ts";
import { ENTRY_ID } from "../entry-id.ts";
import { isNoSuchKey, parseGroups, parsePairs } from "../groups/groups.ts";
import { computeSlot } from "../keys.ts";

export interface TopicEntry {
  readonly entryId: string;
  readonly fields: Readonly<Record<string, string>>;
}

/** How many entries were appended to a topic recently. */
export interface TopicActivity {
  /** Redis time of the last append in ms, even if that entry has been removed since. `undefined` if no entry was ever appended. */
  readonly lastAppendedMs: number | undefined;
  /** Number of retained entries of the last day that were counted. */
  readonly lastDay: number;
  /** False if more entries may have been appended: some were removed, or there are more than the count visits. */
  readonly isExact: boolean;
}

export type TopicInfo = NonNullable<Awaited<ReturnType<Topics["find"]>>>;
export type Topics = ReturnType<typeof createTopics>;

/** Number of dead letters per page. It is small, because dead letters contain whole events, which may be large. */
const DEAD_LETTERS_PER_PAGE = 50;
/** Number of entries per page in the search for received events. It is small, because events may be large. */
const EXAMINED_AT_ONCE = 20;
const EXAMINED_PAGES = 10;
const DAY_MS = 24 * 3600 * 1000;
/** Maximum number of entries that one count visits, so that it blocks Redis for a few milliseconds at most. */
const MAX_COUNTED = 500;
const MAX_COUNTED_BYTES = 4 * 1024 * 1024;
/** Number of samples for MEMORY USAGE. More samples give a better estimate but make the command slower. */
const MEMORY_SAMPLES = 10;

export function createTopics({ redis }: { readonly redis: RedisBus }) {
  const runDelete = luaScript(redis, new URL("./topic-delete.lua", import.meta.url));
  const runActivity = luaScript(redis, new URL("./topic-activity.lua", import.meta.url));
  const runLastAppended = luaScript(redis, new URL("./last-appended.lua", import.meta.url));

  /**
   * Calls the script until everything is deleted. One call deletes at most 500 keys, but a topic may have thousands of keys for
   * deduplication.
   */
  async function deleteInSteps(topic: string, onlyEmpty: 0 | 1): Promise<unknown> {
    for (;;) {
      const reply = await runDelete([topic], [onlyEmpty]);
      if (reply !== 1) return reply;
    }
  }

  return {
    /** Reads facts about a topic's stream, or returns `undefined` if the stream does not exist. `bytes` is an estimate by MEMORY USAGE. */
    async find(topic: string) {
      try {
        const [stream, groups, bytes] = await Promise.all([
          redis.call("xinfo", ["stream", topic]),
          redis.call("xinfo", ["groups", topic]),
          redis.call("memory", ["usage", topic, "samples", MEMORY_SAMPLES]),
        ]);
        return { ...parseStream(stream), bytes: Number(bytes ?? 0), groups: parseGroups(groups) };
      } catch (error) {
        if (isNoSuchKey(error)) return undefined;
        throw error;
      }
    },
    async deleteDeadLetters(topic: string, entryId: string, groups: readonly string[]): Promise<void> {
      for (const key of groups.map((group) => deadLettersKey(topic, group))) {
        for (let from = "-"; ; ) {
          const page = (await redis.call("xrange", [key, from, "+", "COUNT", DEAD_LETTERS_PER_PAGE])) as [
            string,
            string[],
          ][];
          const ids = page.filter(([, fields]) => fields[1] === entryId).map(([id]) => id);
          if (ids.length > 0) await redis.call("xdel", [key, ...ids]);
          const last = page.at(-1);
          if (last === undefined || page.length < DEAD_LETTERS_PER_PAGE) break;
          from = `(${last[0]}`;
        }
      }
    },
    async findEntry(topic: string, entryId: string): Promise<TopicEntry | undefined> {
      if (!ENTRY_ID.test(entryId)) return undefined;
      const [entry] = (await redis.call("xrange", [topic, entryId, entryId])) as RawEntry[];
      return entry && parseEntry(entry);
    },
    /** Returns true if the entry existed. */
    async deleteEntry(topic: string, entryId: string): Promise<boolean> {
      return ENTRY_ID.test(entryId) && (await redis.call("xdel", [topic, entryId])) === 1;
    },
    /**
     * Returns the Redis time of the last append to any of these topics. Entries that have been deleted since count as well.
     *
     * Returns `undefined` if no entry was ever appended.
     */
    async lastAppendedMs(topics: readonly string[]): Promise<number | undefined> {
      const times = await Promise.all(
        [...Map.groupBy(topics, computeSlot).values()].map((keys) => runLastAppended(keys, [])),
      );
      const newest = Math.max(0, ...times.map(Number));
      return newest === 0 ? undefined : newest;
    },
    /** Counts the entries of the last day. Visits at most `MAX_COUNTED` of them if the topic also has older entries. */
    async readActivity(topic: string): Promise<TopicActivity> {
      const reply = await runActivity([topic], [DAY_MS, MAX_COUNTED, MAX_COUNTED_BYTES]);
      const [last, lastDay, more] = reply as [number, number, number];
      return { lastAppendedMs: last === 0 ? undefined : last, lastDay, isExact: more === 0 };
    },
    /**
     * Returns when senders delivered the first event to one of these topics since a time, in ms by the clock of Redis. Test events and events
     * that a poll has recovered do not count. Examines only the first entries since then. Returns `undefined` if there is none.
     */
    async firstReceivedMs(topics: readonly string[], sinceMs: number): Promise<number | undefined> {
      let first: number | undefined;
      for (const topic of topics) {
        let from = String(Math.max(0, Math.floor(sinceMs)));
        for (let page = 0; page < EXAMINED_PAGES; page++) {
          const args = [topic, from, "+", "COUNT", EXAMINED_AT_ONCE];
          const entries = (await redis.call("xrange", args)) as RawEntry[];
          const received = entries.find(([, fields]) => !isTestEvent(fields) && !isRecovered(fields));
          if (received !== undefined) {
            first = Math.min(first ?? Number.POSITIVE_INFINITY, Number.parseInt(received[0], 10));
            break;
          }
          const last = entries.at(-1);
          if (last === undefined || entries.length < EXAMINED_AT_ONCE) break;
          from = `(${last[0]}`;
        }
      }
      return first;
    },
    /** Deletes the stream of a topic, its consumer groups and all related keys. */
    async delete(topic: string): Promise<void> {
      await deleteInSteps(topic, 0);
    },
    /**
     * Deletes the stream of a topic and returns true if it is empty. Returns false if it has entries, even new ones from during the
     * call.
     *
     * Ids for deduplication may be deleted in either case.
     */
    async deleteEmpty(topic: string): Promise<boolean> {
      return (await deleteInSteps(topic, 1)) === 0;
    },
  };
}

export type RawEntry = readonly [id: string, fields: readonly string[]];

export function parseEntry([entryId, pairs]: RawEntry): TopicEntry {
  const fields: Record<string, string> = Object.create(null);
  for (let i = 0; i + 1 < pairs.length; i += 2) fields[pairs[i] ?? ""] = pairs[i + 1] ?? "";
  return { entryId, fields };
}

function parseStream(reply: unknown) {
  const fields = parsePairs(reply as unknown[]);
  const idOf = (entry: unknown) => (Array.isArray(entry) ? String(entry[0]) : undefined);
  return {
    length: Number(fields.get("length")),
    firstEntryId: idOf(fields.get("first-entry")),
    lastEntryId: idOf(fields.get("last-entry")),
  };
}
