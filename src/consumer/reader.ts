import { chunkTopics } from "../lib/stream-chunks.ts";
import type { ReadingDeps } from "./claims.ts";
import { pause, repeat } from "./loop.ts";

export interface ReaderDeps extends ReadingDeps {
  readonly isCluster: boolean;
  /** Whether `commands` may block in Redis until new entries come. */
  readonly isBlocking: boolean;
  /** The pause after a poll that found nothing. */
  readonly rest: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** Of ordered reading: the topics that this reader may read. */
  readonly readable: (() => readonly string[]) | undefined;
}

/** The longest that one command blocks: a stop waits as long. */
const BLOCK_MS = 500;
/** Between polls of more topics than one command can block on. */
const MIN_REST_MS = 5;
const MAX_REST_MS = 100;
/** The same for the gateway's own readers, of which there may be thousands, and which are woken. */
const MAX_UNBLOCKED_REST_MS = 500;
const AFTER_ERROR_MS = 500;
const MAX_ENTRIES = 256;

/** Reads new entries while the window has room; ends with its signal. */
export function readNewEntries(deps: ReaderDeps): Promise<void> {
  const { window, rest, readable, isBlocking, signal, onError, topics } = deps;
  const maxRestMs = isBlocking ? MAX_REST_MS : MAX_UNBLOCKED_REST_MS;
  let restMs = MIN_REST_MS;
  return repeat(
    async () => {
      if (window.free <= 0) {
        await Promise.race([window.changed(), pause(BLOCK_MS, signal)]);
        return 0;
      }
      const all = await topics.current();
      const read = await readOnce(deps, readable?.().filter((topic) => window.wants(topic)) ?? all);
      restMs = read > 0 ? MIN_REST_MS : Math.min(maxRestMs, restMs * 2);
      if (read === 0) await rest(restMs, signal);
      return 0;
    },
    { signal, onError, afterErrorMs: AFTER_ERROR_MS },
  );
}

/** Answers how many entries were read. */
async function readOnce(
  { window, isBlocking, isCluster, commands, signal, topics }: ReaderDeps,
  readable: readonly string[],
): Promise<number> {
  const chunks = chunkTopics(readable, isCluster);
  let read = 0;
  for (const chunk of chunks) {
    const { free } = window;
    if (free <= 0 || signal.aborted) break;
    const count = Math.max(1, Math.min(MAX_ENTRIES, Math.floor(free / chunk.length)));
    const block = isBlocking && chunks.length === 1 ? { blockMs: BLOCK_MS } : {};
    try {
      const entries = await commands.read(chunk, { count, ...block });
      window.add(entries);
      read += entries.length;
    } catch (error) {
      if (!isNoGroup(error)) throw error;
      // One missing group fails the whole command; the message names its topic.
      const { message } = error;
      const named = chunk.filter((topic) => message.includes(`'${topic}'`));
      topics.skip(named.length > 0 ? named : chunk);
    }
  }
  return read;
}

const isNoGroup = (error: unknown): error is Error =>
  error instanceof Error && error.message.startsWith("NOGROUP");
