import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  deadLettersKey,
  knownSubscriptionKey,
  orderedReadersKeys,
  pausedSubscriptionKey,
  subscriptionKey,
} from "../event/subscription-keys.ts";
import type { Connection } from "./connection.ts";

/** An entry that this reader has. */
export interface Entry {
  readonly topic: string;
  readonly entryId: string;
  /** Name, value, name, value … */
  readonly fields: readonly string[];
  /** Times that it was delivered to a reader, this one included. */
  readonly attempt: number;
}

/** A reader's commands to Redis; each rejects with the error of ioredis. */
export interface Commands {
  /** Whether the gateway knows the subscription. */
  readonly isKnown: () => Promise<boolean>;
  /** None while the subscription is paused. */
  readonly listTopics: () => Promise<readonly string[]>;
  /** Reads new entries of topics that one command may read; waits for them up to `blockMs`. */
  readonly read: (
    topics: readonly string[],
    options: { readonly count: number; readonly blockMs?: number },
  ) => Promise<readonly Entry[]>;
  /** Claims entries that were pending for `idleMs`, oldest first; `lost` are no longer on the stream. */
  readonly claimIdle: (
    topic: string,
    options: { readonly idleMs: number; readonly from: string; readonly count: number },
  ) => Promise<{
    readonly next: string;
    readonly entries: readonly Entry[];
    readonly lost: readonly string[];
  }>;
  readonly acknowledge: (topic: string, entryIds: readonly string[]) => Promise<void>;
  /** Answers the entries that this reader no longer has. */
  readonly extendClaims: (topic: string, entryIds: readonly string[]) => Promise<readonly string[]>;
  /** Leaves entries to the reader that claims them first. */
  readonly release: (topic: string, entryIds: readonly string[]) => Promise<void>;
  /** False where another reader has the entry. */
  readonly countAttempt: (entry: Pick<Entry, "topic" | "entryId">, attempt: number) => Promise<boolean>;
  readonly deadLetter: (entry: Entry, reason: string) => Promise<void>;
  readonly removeGoneReaders: (topic: string) => Promise<void>;
  readonly leaveGroup: (topic: string) => Promise<void>;
  /** Answers the topics that this reader owns for `ttlMs`, and how many a reader should own. */
  readonly rebalance: (
    topics: readonly string[],
    options: { readonly ttlMs: number; readonly released: readonly string[] },
  ) => Promise<{ readonly share: number; readonly owned: readonly string[] }>;
}

type RawEntry = readonly [id: string, fields: readonly string[] | null];

const DEAD_LETTERS_TTL_MS = 30 * 86_400_000;
/** A silent reader is removed after a day: its entries are claimed long before. */
const READER_GONE_MS = 86_400_000;
/** So long that any reader may claim the entry at once. */
const RELEASED_IDLE_MS = 2_147_483_647;

export function createCommands(
  { call }: Pick<Connection, "call">,
  {
    group,
    reader,
    maxDeadLetters,
  }: { readonly group: string; readonly reader: string; readonly maxDeadLetters: number },
): Commands {
  const run = createScriptRunner(call);

  return {
    async isKnown() {
      const keys = [knownSubscriptionKey(group), subscriptionKey(group), pausedSubscriptionKey(group)];
      return (await Promise.all(keys.map((key) => call("exists", [key])))).includes(1);
    },
    async listTopics() {
      const [isPaused, topics] = await Promise.all([
        call("exists", [pausedSubscriptionKey(group)]),
        call("smembers", [subscriptionKey(group)]),
      ]);
      return isPaused === 1 ? [] : (topics as string[]);
    },
    async read(topics, { count, blockMs }) {
      const block = blockMs === undefined ? [] : ["BLOCK", blockMs];
      const fresh = topics.map(() => ">");
      const args = ["GROUP", group, reader, "COUNT", count, ...block, "STREAMS", ...topics, ...fresh];
      const reply = (await call("xreadgroup", args)) as [string, RawEntry[]][] | null;
      return (reply ?? []).flatMap(([topic, rows]) =>
        rows.map(([entryId, fields]) => ({ topic, entryId, fields: fields ?? [], attempt: 1 })),
      );
    },
    async claimIdle(topic, { idleMs, from, count }) {
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
    async acknowledge(topic, entryIds) {
      if (entryIds.length > 0) await call("xack", [topic, group, ...entryIds]);
    },
    async extendClaims(topic, entryIds) {
      return (await run("extend-claims", [topic], [group, reader, ...entryIds])) as string[];
    },
    async release(topic, entryIds) {
      if (entryIds.length === 0) return;
      await call("xclaim", [topic, group, reader, 0, ...entryIds, "IDLE", RELEASED_IDLE_MS, "JUSTID"]);
    },
    async countAttempt({ topic, entryId }, attempt) {
      return (await run("count-attempt", [topic], [group, reader, entryId, attempt])) === 1;
    },
    async deadLetter({ topic, entryId, fields, attempt }, reason) {
      const letter = ["entry-id", entryId, "attempts", attempt, "reason", reason.slice(0, 1_024), ...fields];
      const limits = [maxDeadLetters, DEAD_LETTERS_TTL_MS];
      const keys = [topic, deadLettersKey(topic, group)];
      await run("dead-letter", keys, [group, entryId, ...limits, ...letter]);
    },
    async removeGoneReaders(topic) {
      await run("remove-gone-readers", [topic], [group, READER_GONE_MS]);
    },
    async leaveGroup(topic) {
      // Only without pending entries: Redis deletes those with the reader.
      const mine = (await call("xpending", [topic, group, "-", "+", 1, reader])) as unknown[];
      if (mine.length === 0) await call("xgroup", ["DELCONSUMER", topic, group, reader]);
    },
    async rebalance(topics, { ttlMs, released }) {
      const args = [reader, ttlMs, released.length, ...released, ...topics];
      const [share, ...owned] = (await run("rebalance", orderedReadersKeys(group), args)) as [
        number,
        ...string[],
      ];
      return { share, owned };
    },
  };
}

/** Runs the Lua files of this folder. */
function createScriptRunner(call: Connection["call"]) {
  const scripts = new Map<string, { readonly text: string; readonly sha: string }>();
  return async (
    name: string,
    keys: readonly string[],
    args: readonly (string | number)[],
  ): Promise<unknown> => {
    let script = scripts.get(name);
    if (script === undefined) {
      const text = readFileSync(new URL(`./${name}.lua`, import.meta.url), "utf8");
      script = { text, sha: createHash("sha1").update(text).digest("hex") };
      scripts.set(name, script);
    }
    const rest = [keys.length, ...keys, ...args];
    try {
      return await call("evalsha", [script.sha, ...rest]);
    } catch (error) {
      if (!(error instanceof Error && error.message.startsWith("NOSCRIPT"))) throw error;
      return call("eval", [script.text, ...rest]);
    }
  };
}
