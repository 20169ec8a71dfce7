import type { EntryPlace } from "../../bus/topics/entry-merge.ts";
import type { TopicEntry } from "../../bus/topics/topics.ts";
import type { Deps } from "../kit/deps.ts";

const ENTRIES_AT_ONCE = 8;

/** An entry with its place. `entry` is undefined if it was deleted after it was listed. */
export interface ReadEntry extends EntryPlace {
  readonly entry: TopicEntry | undefined;
}

/** Reads entries in the given order, several at a time. */
export async function* readEntries(
  { topics }: Deps,
  places: AsyncIterable<EntryPlace> | Iterable<EntryPlace>,
): AsyncGenerator<ReadEntry> {
  const next: EntryPlace[] = [];
  const read = () =>
    Promise.all(
      next.splice(0).map(async ({ topic, entryId }) => ({
        topic,
        entryId,
        entry: await topics.findEntry(topic, entryId),
      })),
    );
  for await (const place of places) {
    next.push(place);
    if (next.length === ENTRIES_AT_ONCE) yield* await read();
  }
  yield* await read();
}
