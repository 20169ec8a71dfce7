import { sleep } from "../lib/sleep.ts";
import { chunkTopics } from "../lib/stream-chunks.ts";
import type { ReadingDeps, TopicOwnership } from "./claims.ts";
import { repeat } from "./loop.ts";

export interface ReaderDeps extends ReadingDeps {
  readonly isCluster: boolean;
  readonly isBlocking: boolean;
  /** Waits after a poll that returned no entries. */
  readonly rest: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** The topics that this reader may read. `undefined` if events need not be handled in order. */
  readonly ownership: TopicOwnership | undefined;
}

/** Maximum time in ms that one command blocks. Stopping may take as long. */
const BLOCK_MS = 500;
/** Minimum wait between polls, in ms. Readers poll if one command cannot block on all their topics. */
const MIN_REST_MS = 5;
const MAX_REST_MS = 100;
/**
 * Maximum wait between polls in ms, for readers inside the gateway. It is long, because the gateway wakes its readers when it
 * publishes.
 */
const MAX_UNBLOCKED_REST_MS = 500;
const AFTER_ERROR_MS = 500;
const MAX_ENTRIES = 256;

/** Reads new entries whenever there is space for them, until the signal aborts. */
export function readNewEntries(deps: ReaderDeps): Promise<void> {
  const { window, rest, isBlocking, signal, onError, topics } = deps;
  const maxRestMs = isBlocking ? MAX_REST_MS : MAX_UNBLOCKED_REST_MS;
  let restMs = MIN_REST_MS;
  return repeat(
    async () => {
      if (!window.hasRoom) {
        await Promise.race([window.changed(), sleep(BLOCK_MS, signal)]);
        return 0;
      }
      const read = await readOnce(deps, await topics.current());
      restMs = read > 0 ? MIN_REST_MS : Math.min(maxRestMs, restMs * 2);
      if (read === 0) await rest(restMs, signal);
      return 0;
    },
    { signal, onError, afterErrorMs: AFTER_ERROR_MS },
  );
}

/** Reads each topic at most once and returns the number of new entries. */
async function readOnce(deps: ReaderDeps, all: readonly string[]): Promise<number> {
  const { window, isBlocking, isCluster, ownership, commands, signal, topics } = deps;
  const owned = ownership?.readable();
  const chunks = chunkTopics(owned?.topics.filter((topic) => window.wants(topic)) ?? all, isCluster);
  let read = 0;
  for (const chunk of chunks) {
    const { free } = window;
    if (free <= 0 || signal.aborted) break;
    const count = Math.max(1, Math.min(MAX_ENTRIES, Math.floor(free / chunk.length)));
    const block = isBlocking && chunks.length === 1 ? { blockMs: BLOCK_MS } : {};
    try {
      const entries = await commands.read(chunk, { count, ...block });
      // Another reader may have owned the topic during this read. To keep the order, all pending entries must be claimed first, including
      // the new ones.
      const late = new Set(chunk.filter((topic) => owned?.isAsBefore(topic) === false));
      for (const topic of late) ownership?.noteUnread(topic);
      window.add(late.size === 0 ? entries : entries.filter(({ topic }) => !late.has(topic)));
      read += entries.length;
    } catch (error) {
      if (!isNoGroup(error)) {
        // Claim these entries later. If only the reply was lost, Redis has already assigned them to this reader.
        for (const topic of chunk) ownership?.noteUnread(topic);
        throw error;
      }
      // One missing consumer group fails the whole command. Only the error message says which topic it belongs to.
      const { message } = error;
      const named = chunk.filter((topic) => message.includes(`'${topic}'`));
      topics.skip(named.length > 0 ? named : chunk);
    }
  }
  return read;
}

/** Returns true if a consumer group is missing. UNBLOCKED means that a stream was deleted with its last group during a blocking read. */
const isNoGroup = (error: unknown): error is Error =>
  error instanceof Error && /^(?:NOGROUP|UNBLOCKED) /.test(error.message);
