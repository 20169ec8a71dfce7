import { mapBounded } from "../../lib/map-bounded.ts";
import type { EntryIndex, EntryRange } from "./entry-index.ts";

export interface EntryPlace {
  readonly topic: string;
  readonly entryId: string;
}

const CONCURRENCY = 16;
const IDS_AHEAD = 100;
/** Number of ids per call if many entries are skipped, because the calls would take most of the time. */
const IDS_AHEAD_TO_SKIP = 500;

/** Read position in a topic: the next entry, and the ids that are already loaded after it. */
interface Head {
  readonly topic: string;
  readonly ids: readonly string[];
  readonly at: number;
  readonly ended: boolean;
  readonly key: string;
}

/**
 * Yields the entries of all topics in one order: by time, then id, then topic. Reads only as needed.
 *
 * With `after`, continues after that entry.
 */
export async function* mergeEntries(
  entries: EntryIndex,
  topics: readonly string[],
  range: EntryRange,
  after?: EntryPlace,
): AsyncGenerator<EntryPlace, void, void> {
  const read = async (topic: string, from: string): Promise<Head | undefined> => {
    const { ids, ended } = await entries.listIds(topic, { from, to: range.to }, IDS_AHEAD);
    return headAt(topic, ids, 0, ended);
  };
  const startOf = (topic: string): string => {
    if (after === undefined) return range.from;
    return topic > after.topic ? after.entryId : `(${after.entryId}`;
  };
  const first = await mapBounded(topics, CONCURRENCY, (topic) => read(topic, startOf(topic)));
  yield* mergeHeads(first, read, (a, b) => a > b);
}

/** Entries of several topics, newest first, and the number of all entries of these topics. */
export interface NewestEntries {
  readonly total: number;
  readonly places: AsyncGenerator<EntryPlace, void, void>;
}

/**
 * Opens the entries of all topics in a range, newest first. The order is exactly the reverse of `mergeEntries`. Reads only the newest id of
 * each topic, and then further ids of those topics whose entries are yielded.
 *
 * @param after entry after which to continue
 * @param skips whether the caller skips many entries
 */
export async function openNewest(
  entries: EntryIndex,
  topics: readonly string[],
  range: EntryRange,
  { after, skips = false }: { readonly after?: EntryPlace | undefined; readonly skips?: boolean } = {},
): Promise<NewestEntries> {
  const idsAhead = skips ? IDS_AHEAD_TO_SKIP : IDS_AHEAD;
  const read = async (topic: string, to: string): Promise<Head | undefined> => {
    const { ids, ended } = await entries.listIds(topic, { from: range.from, to }, idsAhead, true);
    return headAt(topic, ids, 0, ended);
  };
  const endOf = (topic: string): string => {
    // The cursor of a list without this end can point to an entry after the end. Only milliseconds are compared, because an end contains all of them.
    if (after === undefined || Number.parseInt(range.to, 10) < Number.parseInt(after.entryId, 10))
      return range.to;
    return topic < after.topic ? after.entryId : `(${after.entryId}`;
  };
  const newest = await entries.listNewest(topics, endOf, range.from);
  const heads = newest.map(({ topic, entryId }) =>
    entryId === undefined ? undefined : headAt(topic, [entryId], 0, false),
  );
  return {
    total: newest.reduce((sum, { count }) => sum + count, 0),
    places: mergeHeads(heads, read, (a, b) => a < b),
  };
}

/** Yields the entries of all topics in a range, newest first. */
export async function* mergeNewest(
  entries: EntryIndex,
  topics: readonly string[],
  range: EntryRange,
): AsyncGenerator<EntryPlace, void, void> {
  yield* (await openNewest(entries, topics, range)).places;
}

/**
 * Merges entries of several topics.
 *
 * @param comesAfter returns true if `key` must be yielded after `other`
 */
async function* mergeHeads(
  first: readonly (Head | undefined)[],
  read: (topic: string, from: string) => Promise<Head | undefined>,
  comesAfter: (key: string, other: string) => boolean,
): AsyncGenerator<EntryPlace, void, void> {
  // Sort in reverse order, because removing the last element of an array is cheap.
  const heads = first
    .filter((head) => head !== undefined)
    .sort((a, b) => (comesAfter(a.key, b.key) ? -1 : 1));
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    const { topic, ids, at, ended } = head;
    const entryId = ids[at] ?? "";
    yield { topic, entryId };
    const known = headAt(topic, ids, at + 1, ended);
    const next = known ?? (ended ? undefined : await read(topic, `(${entryId}`));
    if (next) heads.splice(findInsertIndex(heads, next.key, comesAfter), 0, next);
  }
}

function headAt(topic: string, ids: readonly string[], at: number, ended: boolean): Head | undefined {
  const id = ids[at];
  return id === undefined ? undefined : { topic, ids, at, ended, key: `${sortKey(id)} ${topic}` };
}

/** Returns an entry id with both numbers padded to a fixed length, so that ids sort correctly as text. */
function sortKey(entryId: string): string {
  const [ms = "", sequence = ""] = entryId.split("-");
  return `${ms.padStart(20, "0")}-${sequence.padStart(20, "0")}`;
}

/** Finds the place of a new head by binary search. `heads` are sorted in reverse order. */
function findInsertIndex(
  heads: readonly Head[],
  key: string,
  comesAfter: (key: string, other: string) => boolean,
): number {
  let low = 0;
  let high = heads.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (comesAfter(heads[middle]?.key ?? "", key)) low = middle + 1;
    else high = middle;
  }
  return low;
}
