import { setTimeout as delay } from "node:timers/promises";
import { chunkTopics } from "../lib/stream-chunks.ts";
import type { Commands } from "./commands.ts";
import type { Hand } from "./in-flight-window.ts";
import type { ConsumerSettings } from "./options.ts";
import type { TopicList } from "./topic-list.ts";

export interface ReaderDeps {
  readonly settings: ConsumerSettings;
  readonly isCluster: boolean;
  readonly topics: TopicList;
  /** Where it waits in Redis, on a connection of its own. */
  readonly reading: Commands;
  /** Whether `reading` may wait in Redis for new entries. */
  readonly isBlocking: boolean;
  readonly idle: (ms: number, signal: AbortSignal) => Promise<void>;
  readonly hand: Hand;
  /** Of ordered reading: the topics that are this reader's, and drained of what others have left. */
  readonly mine: ((topics: readonly string[]) => readonly string[]) | undefined;
  readonly signal: AbortSignal;
}

/** What one command waits for at most: a stop waits as long. */
const BLOCK_MS = 500;
/** Between looks at more topics than one command can wait for. */
const LEAST_IDLE_MS = 5;
const MOST_IDLE_MS = 100;
/** The same for readers of the gateway's own, of which there may be thousands, and which are woken. */
const MOST_UNBLOCKED_IDLE_MS = 500;
const AFTER_FAILURE_MS = 500;
const MOST_ENTRIES = 256;

/** Fetches new entries for as long as there is room in the hand; ends with its signal. */
export async function runReader(deps: ReaderDeps): Promise<void> {
  const { hand, idle, isBlocking, settings, signal, topics } = deps;
  const mostIdleMs = isBlocking ? MOST_IDLE_MS : MOST_UNBLOCKED_IDLE_MS;
  let idleMs = LEAST_IDLE_MS;
  while (!signal.aborted) {
    if (hand.room <= 0) {
      await Promise.race([hand.changed(), delay(BLOCK_MS, undefined, { signal }).catch(() => {})]);
      continue;
    }
    try {
      const all = await topics.current();
      const readable = deps.mine?.(all).filter((topic) => hand.isHungry(topic)) ?? all;
      const got = await readOnce(deps, readable);
      idleMs = got > 0 ? LEAST_IDLE_MS : Math.min(mostIdleMs, idleMs * 2);
      if (got === 0) await idle(idleMs, signal);
    } catch (error) {
      if (signal.aborted) return;
      settings.onProblem({ kind: "redis", error });
      await delay(AFTER_FAILURE_MS, undefined, { signal }).catch(() => {});
    }
  }
}

async function readOnce(
  { hand, isBlocking, isCluster, reading, signal, topics }: ReaderDeps,
  readable: readonly string[],
): Promise<number> {
  const chunks = chunkTopics(readable, isCluster);
  let got = 0;
  for (const chunk of chunks) {
    const { room } = hand;
    if (room <= 0 || signal.aborted) break;
    const count = Math.max(1, Math.min(MOST_ENTRIES, Math.floor(room / chunk.length)));
    const block = isBlocking && chunks.length === 1 ? { blockMs: BLOCK_MS } : {};
    try {
      const entries = await reading.read(chunk, { count, ...block });
      hand.add(entries);
      got += entries.length;
    } catch (error) {
      if (!isNoGroup(error)) throw error;
      // One missing group fails all of them: which one stands in the message.
      const { message } = error;
      const named = chunk.filter((topic) => message.includes(`'${topic}'`));
      topics.noteMissing(named.length > 0 ? named : chunk);
    }
  }
  return got;
}

const isNoGroup = (error: unknown): error is Error =>
  error instanceof Error && error.message.startsWith("NOGROUP");
