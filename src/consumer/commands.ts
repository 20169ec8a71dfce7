import {
  deadLettersKey,
  knownSubscriptionKey,
  orderedReadersKeys,
  pausedSubscriptionKey,
  readerErrorKey,
  subscriptionKey,
} from "../event/subscription-keys.ts";
import { luaScript } from "../lib/lua.ts";
import type { Connection } from "./connection.ts";
import type { ConsumerSettings } from "./options.ts";

export interface Entry {
  readonly topic: string;
  readonly entryId: string;
  /** Alternating names and values. */
  readonly fields: readonly string[];
  /** Number of deliveries of this entry to any reader, including this delivery. */
  readonly attempt: number;
}

export type Commands = ReturnType<typeof createCommands>;

type RawEntry = readonly [id: string, fields: readonly string[] | null];

const DEAD_LETTERS_TTL_MS = 30 * 86_400_000;
const ERROR_TTL_MS = 7 * 86_400_000;
/** Time in ms without a sign of life after which a reader is removed from the group. Other readers claim its entries much earlier. */
const READER_GONE_MS = 86_400_000;
/** Idle time in ms to set on a released entry. It is the largest 32-bit integer, so that any reader may claim the entry at once. */
const RELEASED_IDLE_MS = 2_147_483_647;

/** Creates the Redis commands of a reader. The commands reject with the errors of ioredis. */
export function createCommands(
  redis: Pick<Connection, "call">,
  settings: Pick<ConsumerSettings, "subscription" | "name" | "maxDeadLetters">,
) {
  const { call } = redis;
  const { subscription: group, name: reader, maxDeadLetters } = settings;
  const lua = (name: string) => luaScript(redis, new URL(`./${name}.lua`, import.meta.url));
  const runExtendClaims = lua("extend-claims");
  const runCountAttempt = lua("count-attempt");
  const runDeadLetter = lua("dead-letter");
  const runRemoveGoneReaders = lua("remove-gone-readers");
  const runLoadEntries = lua("load-entries");
  const runRebalance = lua("rebalance");

  return {
    async isKnown(): Promise<boolean> {
      const keys = [knownSubscriptionKey(group), subscriptionKey(group), pausedSubscriptionKey(group)];
      return (await Promise.all(keys.map((key) => call("exists", [key])))).includes(1);
    },
    /** Returns the topics of the subscription, or an empty list while the subscription is paused. */
    async listTopics(): Promise<readonly string[]> {
      const [isPaused, topics] = await Promise.all([
        call("exists", [pausedSubscriptionKey(group)]),
        call("smembers", [subscriptionKey(group)]),
      ]);
      return isPaused === 1 ? [] : (topics as string[]);
    },
    /**
     * Reads new entries, and waits up to `blockMs` for them.
     *
     * @param topics topics for one command; in a Redis Cluster, they must share a hash slot
     */
    async read(
      topics: readonly string[],
      { count, blockMs }: { readonly count: number; readonly blockMs?: number },
    ): Promise<readonly Entry[]> {
      const block = blockMs === undefined ? [] : ["BLOCK", blockMs];
      const fresh = topics.map(() => ">");
      const args = ["GROUP", group, reader, "COUNT", count, ...block, "STREAMS", ...topics, ...fresh];
      const reply = (await call("xreadgroup", args)) as [string, RawEntry[]][] | null;
      const entries: Entry[] = [];
      for (const [topic, rows] of reply ?? []) {
        for (const [entryId, fields] of rows)
          entries.push({ topic, entryId, fields: fields ?? [], attempt: 1 });
      }
      return entries;
    },
    /**
     * Claims entries that have been pending for at least `idleMs`, oldest first. `lost` lists ids of entries that were already
     * trimmed.
     */
    async claimIdle(
      topic: string,
      { idleMs, from, count }: { readonly idleMs: number; readonly from: string; readonly count: number },
    ) {
      const reply = await call("xautoclaim", [topic, group, reader, idleMs, from, "COUNT", count]);
      const [next, rows, lost = []] = reply as [string, RawEntry[], string[]?];
      const attempts = new Map<string, number>();
      const [first, last] = [rows[0]?.[0], rows.at(-1)?.[0]];
      if (first !== undefined && last !== undefined) {
        const pending = await call("xpending", [topic, group, first, last, rows.length * 4 + 64, reader]);
        for (const [id, , , times] of pending as [string, string, number, number][]) attempts.set(id, times);
      }
      const entries = rows.flatMap(([entryId, fields]) =>
        fields === null ? [] : [{ topic, entryId, fields, attempt: attempts.get(entryId) ?? 1 }],
      );
      return { next, entries, lost };
    },
    async acknowledge(topic: string, entryIds: readonly string[]): Promise<void> {
      if (entryIds.length > 0) await call("xack", [topic, group, ...entryIds]);
    },
    /** Keeps the claims of this reader on these entries. Returns the entries that another reader has claimed meanwhile. */
    async extendClaims(topic: string, entryIds: readonly string[]): Promise<readonly string[]> {
      return (await runExtendClaims([topic], [group, reader, ...entryIds])) as string[];
    },
    /**
     * Reads the fields of pending entries. An id yields `"taken"` if the entry is no longer pending for this reader, and `"lost"` if
     * retention has trimmed it.
     */
    async loadEntries(
      topic: string,
      entryIds: readonly string[],
    ): Promise<readonly (readonly string[] | "taken" | "lost")[]> {
      const reply = await runLoadEntries([topic], [group, reader, ...entryIds]);
      return (reply as (string[] | number)[]).map((row) =>
        typeof row !== "number" ? row : row === 0 ? "taken" : "lost",
      );
    },
    /** Releases entries, so that another reader can claim them at once. */
    async release(topic: string, entryIds: readonly string[]): Promise<void> {
      if (entryIds.length === 0) return;
      await call("xclaim", [topic, group, reader, 0, ...entryIds, "IDLE", RELEASED_IDLE_MS, "JUSTID"]);
    },
    /** Stores the number of attempts at an entry. Returns false if another reader has claimed the entry. */
    async countAttempt(
      { topic, entryId }: Pick<Entry, "topic" | "entryId">,
      attempt: number,
    ): Promise<boolean> {
      return (await runCountAttempt([topic], [group, reader, entryId, attempt])) === 1;
    },
    async deadLetter({ topic, entryId, fields, attempt }: Entry, reason: string): Promise<void> {
      const letter = ["entry-id", entryId, "attempts", attempt, "reason", reason.slice(0, 1_024), ...fields];
      const limits = [maxDeadLetters, DEAD_LETTERS_TTL_MS];
      const keys = [topic, deadLettersKey(topic, group)];
      await runDeadLetter(keys, [group, entryId, ...limits, ...letter]);
    },
    /** Stores the last error of a handler of this subscription, for its `lastError` in the API. */
    async reportError(message: string): Promise<void> {
      const key = readerErrorKey(group);
      await call("hset", [key, "at", new Date().toISOString(), "message", message.slice(0, 1_024)]);
      await call("pexpire", [key, ERROR_TTL_MS]);
    },
    async removeGoneReaders(topic: string): Promise<void> {
      await runRemoveGoneReaders([topic], [group, READER_GONE_MS]);
    },
    async leaveGroup(topic: string): Promise<void> {
      // Remove the reader only if it has no pending entries, because Redis would delete these entries from the group too.
      const mine = (await call("xpending", [topic, group, "-", "+", 1, reader])) as unknown[];
      if (mine.length === 0) await call("xgroup", ["DELCONSUMER", topic, group, reader]);
    },
    /** Renews the lease for `ttlMs`. Returns the topics of this reader, and the fair number of topics per reader. */
    async rebalance(
      topics: readonly string[],
      { ttlMs, released }: { readonly ttlMs: number; readonly released: readonly string[] },
    ) {
      const args = [reader, ttlMs, released.length, ...released, ...topics];
      const reply = await runRebalance(orderedReadersKeys(group), args);
      const [share, ...owned] = reply as [number, ...string[]];
      return { share, owned };
    },
  };
}
