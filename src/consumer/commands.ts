import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { deadLettersKey, pausedSubscriptionKey, subscriptionKey } from "../bus/keys.ts";
import type { Connection } from "./connection.ts";

/** An entry in this reader's hand. */
export interface Entry {
  readonly topic: string;
  readonly entryId: string;
  /** Name, value, name, value … */
  readonly fields: readonly string[];
  /** Times that it was given to a reader, this one included. */
  readonly attempt: number;
}

/** What a reader asks of Redis; each rejects with what ioredis says. */
export interface Commands {
  /** None while the subscription is paused. */
  readonly listTopics: () => Promise<readonly string[]>;
  /** New entries of topics that one command may read, at once or after up to `blockMs`. */
  readonly read: (
    topics: readonly string[],
    options: { readonly count: number; readonly blockMs?: number },
  ) => Promise<readonly Entry[]>;
  /** Takes entries over that were in other hands for `idleMs`, oldest first; `lost` are no longer on the stream. */
  readonly takeOver: (
    topic: string,
    options: { readonly idleMs: number; readonly from: string; readonly count: number },
  ) => Promise<{
    readonly next: string;
    readonly entries: readonly Entry[];
    readonly lost: readonly string[];
  }>;
  readonly acknowledge: (topic: string, entryIds: readonly string[]) => Promise<void>;
  /** Answers those that are no longer in this hand. */
  readonly keep: (topic: string, entryIds: readonly string[]) => Promise<readonly string[]>;
  /** Leaves entries to whoever comes first. */
  readonly letGo: (topic: string, entryIds: readonly string[]) => Promise<void>;
  /** False where the entry is another's. */
  readonly noteAttempt: (entry: Pick<Entry, "topic" | "entryId">, attempt: number) => Promise<boolean>;
  readonly bury: (entry: Entry, reason: string) => Promise<void>;
  readonly forgetReaders: (topic: string) => Promise<void>;
  readonly leave: (topic: string) => Promise<void>;
  /** The topics that are this reader's for `ttlMs`, and how many a reader should have. */
  readonly share: (
    topics: readonly string[],
    options: { readonly ttlMs: number; readonly given: readonly string[] },
  ) => Promise<{ readonly share: number; readonly held: readonly string[] }>;
}

type RawEntry = readonly [id: string, fields: readonly string[] | null];

const DEAD_LETTERS_KEPT_MS = 30 * 86_400_000;
/** Readers that left without a word stay for a day: what they had is taken over long before. */
const READERS_KEPT_MS = 86_400_000;
/** So long in a hand that whoever comes first may take it. */
const LET_GO_IDLE_MS = 2_147_483_647;

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
    async takeOver(topic, { idleMs, from, count }) {
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
    async keep(topic, entryIds) {
      return (await run("extend-claims", [topic], [group, reader, ...entryIds])) as string[];
    },
    async letGo(topic, entryIds) {
      if (entryIds.length === 0) return;
      await call("xclaim", [topic, group, reader, 0, ...entryIds, "IDLE", LET_GO_IDLE_MS, "JUSTID"]);
    },
    async noteAttempt({ topic, entryId }, attempt) {
      return (await run("retry", [topic], [group, reader, entryId, attempt])) === 1;
    },
    async bury({ topic, entryId, fields, attempt }, reason) {
      const letter = ["entry-id", entryId, "attempts", attempt, "reason", reason.slice(0, 1_024), ...fields];
      const kept = [group, entryId, maxDeadLetters, DEAD_LETTERS_KEPT_MS];
      await run("bury", [topic, deadLettersKey(topic, group)], [...kept, ...letter]);
    },
    async forgetReaders(topic) {
      await run("forget", [topic], [group, READERS_KEPT_MS]);
    },
    async leave(topic) {
      // Only what has nothing in hand: a reader that is deleted takes its entries with it.
      const mine = (await call("xpending", [topic, group, "-", "+", 1, reader])) as unknown[];
      if (mine.length === 0) await call("xgroup", ["DELCONSUMER", topic, group, reader]);
    },
    async share(topics, { ttlMs, given }) {
      const keys = [`inlet:{sub.${group}}:readers`, `inlet:{sub.${group}}:owners`];
      const [share, ...held] = (await run("rebalance", keys, [
        ...[reader, ttlMs, given.length],
        ...given,
        ...topics,
      ])) as [number, ...string[]];
      return { share, held };
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
