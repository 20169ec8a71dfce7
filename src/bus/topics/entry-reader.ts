import { createTurns } from "../../lib/turns.ts";
import type { RedisBus } from "../connection/redis.ts";
import { compareEntryIds } from "../entry-id.ts";
import type { EntryPlace, ListedEntry } from "./entry-place.ts";
import { parseEntry, type RawEntry, type TopicEntry } from "./topics.ts";

/** An entry with its place. `entry` is undefined if it was deleted after it was listed. */
export interface ReadEntry extends EntryPlace {
  readonly entry: TopicEntry | undefined;
}

export interface ReadEntriesOptions {
  /** Number of entries of the first batch. Default: the maximum. A caller that needs a certain number of entries sets it. */
  readonly first?: number;
}

/** Maximum number and size of the entries of a batch. A reply of this size occupies the event loop for a few milliseconds. */
const MAX_BATCH = 256;
const MAX_BATCH_BYTES = 256 * 1024;
/** Maximum time in ms that the caller processes entries until the event loop continues with other work, such as deliveries. */
const SLICE_MS = 5;

/** Creates a function that reads listed entries. All reads share the event loop: only one processes entries per iteration. */
export function createEntryReader({ redis }: { readonly redis: RedisBus }) {
  const takeTurn = createTurns();

  async function readBatch(batch: readonly ListedEntry[]): Promise<readonly ReadEntry[]> {
    const byTopic = [...Map.groupBy(batch, ({ topic }) => topic)];
    const read = await Promise.all(
      byTopic.map(async ([topic, listed]) => {
        const ends = [listed.at(0)?.entryId ?? "", listed.at(-1)?.entryId ?? ""].sort(compareEntryIds);
        const reply = await redis.call("xrange", [topic, ...ends, "COUNT", listed.length]);
        return [topic, new Map((reply as readonly RawEntry[]).map((raw) => [raw[0], raw]))] as const;
      }),
    );
    const found = new Map(read);
    return batch.map(({ topic, entryId }) => {
      const raw = found.get(topic)?.get(entryId);
      return { topic, entryId, entry: raw && parseEntry(raw) };
    });
  }

  /**
   * Reads entries in the given order. The entries of each topic must follow each other in the topic. From the second batch on, reads the
   * next batch while the caller processes one.
   *
   * Yields to the event loop between batches, and when the caller has processed entries for a few milliseconds.
   */
  return async function* readEntries(
    entries: AsyncIterable<ListedEntry> | Iterable<ListedEntry>,
    { first = MAX_BATCH }: ReadEntriesOptions = {},
  ): AsyncGenerator<ReadEntry, void, void> {
    const listed =
      Symbol.asyncIterator in entries ? entries[Symbol.asyncIterator]() : entries[Symbol.iterator]();
    let isStopped = false;

    async function readNext(most: number): Promise<readonly ReadEntry[]> {
      const batch: ListedEntry[] = [];
      for (let bytes = 0; !isStopped && batch.length < most && bytes < MAX_BATCH_BYTES; ) {
        const next = await listed.next();
        if (next.done) break;
        batch.push(next.value);
        bytes += next.value.bytes;
      }
      return isStopped ? [] : readBatch(batch);
    }

    function readAhead(): Promise<readonly ReadEntry[]> {
      const next = readNext(MAX_BATCH);
      // The caller may stop before it awaits this batch.
      next.catch(() => {});
      return next;
    }

    try {
      let batch = await readNext(Math.min(first, MAX_BATCH));
      for (let isFirst = true; batch.length > 0; isFirst = false) {
        const next = isFirst ? undefined : readAhead();
        await takeTurn(() => {});
        let startedMs = performance.now();
        for (const one of batch) {
          yield one;
          if (performance.now() - startedMs < SLICE_MS) continue;
          await takeTurn(() => {});
          startedMs = performance.now();
        }
        batch = await (next ?? readNext(MAX_BATCH));
      }
    } finally {
      isStopped = true;
    }
  };
}
