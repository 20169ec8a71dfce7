import { type EntryIds, type EntryIndex, type EntryRange, MAX_IDS_AT_ONCE } from "./entry-index.ts";
import type { EntryPlace, ListedEntry, ListedId } from "./entry-place.ts";

/** Number of ids that the first read of all topics lists, if they have that many. */
const IDS_AHEAD = 100;
/** The same if many entries are skipped, because the calls would take most of the time. */
const IDS_AHEAD_TO_SKIP = MAX_IDS_AT_ONCE;
/** Maximum number of topics that are read together, and of heads that are examined to find these topics. */
const MAX_READ_TOGETHER = 64;
const MAX_EXAMINED = 256;

/** Read position in a topic: the next entry, and the ids that are already loaded after it. */
interface Head {
  readonly topic: string;
  ids: readonly ListedId[];
  at: number;
  ended: boolean;
  /** Number of ids that the next read lists. It grows with the reads, so that only topics with many entries are read far ahead. */
  idsAhead: number;
  /** Entry id of the next entry, in a form that sorts as text. */
  key: string;
}

/** The order of a merge, and how it continues a topic. */
interface Direction {
  readonly isNewestFirst: boolean;
  /** Returns the rest of the range after an entry. */
  readonly rangeAfter: (entryId: string) => EntryRange;
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
): AsyncGenerator<ListedEntry, void, void> {
  const startOf = (topic: string): string => {
    if (after === undefined) return range.from;
    return topic > after.topic ? after.entryId : `(${after.entryId}`;
  };
  const limit = computeIdsAhead(IDS_AHEAD, topics.length);
  const ranges = topics.map((topic) => ({ topic, from: startOf(topic), to: range.to, limit }));
  const first = await entries.listIds(ranges);
  const heads = topics.map((topic, n) => createHead(topic, first[n] ?? NO_IDS, limit));
  yield* mergeHeads(entries, heads, {
    isNewestFirst: false,
    rangeAfter: (entryId) => ({ from: `(${entryId}`, to: range.to }),
  });
}

/** Entries of several topics, newest first, and the number of all entries of these topics. */
export interface NewestEntries {
  readonly total: number;
  readonly places: AsyncGenerator<ListedEntry, void, void>;
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
  const endOf = (topic: string): string => {
    // The cursor of a list without this end can point to an entry after the end. Only milliseconds are compared, because an end contains all of them.
    if (after === undefined || Number.parseInt(range.to, 10) < Number.parseInt(after.entryId, 10))
      return range.to;
    return topic < after.topic ? after.entryId : `(${after.entryId}`;
  };
  const found = await entries.listNewest(topics, endOf, range.from);
  const occupied = found.flatMap(({ topic, newest }) => (newest === undefined ? [] : [{ topic, newest }]));
  const idsAhead = computeIdsAhead(skips ? IDS_AHEAD_TO_SKIP : IDS_AHEAD, occupied.length);
  const heads = occupied.map(({ topic, newest }) =>
    createHead(topic, { ids: [newest], ended: false }, idsAhead),
  );
  return {
    total: found.reduce((sum, { count }) => sum + count, 0),
    places: mergeHeads(entries, heads, {
      isNewestFirst: true,
      rangeAfter: (entryId) => ({ from: range.from, to: `(${entryId}` }),
    }),
  };
}

/** Yields the entries of all topics in a range, newest first. */
export async function* mergeNewest(
  entries: EntryIndex,
  topics: readonly string[],
  range: EntryRange,
): AsyncGenerator<ListedEntry, void, void> {
  yield* (await openNewest(entries, topics, range)).places;
}

async function* mergeHeads(
  entries: EntryIndex,
  first: readonly Head[],
  direction: Direction,
): AsyncGenerator<ListedEntry, void, void> {
  const sign = direction.isNewestFirst ? -1 : 1;
  const comesAfter = (a: Head, b: Head): boolean => sign * compareHeads(a, b) > 0;
  // Sort in reverse order, because removing the last element of an array is cheap.
  const heads = first.filter(({ ids }) => ids.length > 0).sort((a, b) => sign * compareHeads(b, a));
  for (let head = heads.pop(); head !== undefined; head = heads.pop()) {
    const { topic, ids, at } = head;
    const id = ids[at];
    if (id !== undefined) yield { topic, entryId: id.entryId, bytes: id.bytes };
    head.at++;
    if (head.at === ids.length && !head.ended) await readFurther(entries, head, heads, direction);
    if (head.at === head.ids.length) continue;
    if (heads.length > 0) head.key = sortKeyAt(head.ids, head.at);
    heads.splice(findInsertIndex(heads, head, comesAfter), 0, head);
  }
}

/**
 * Reads further ids of a topic that has no loaded ids. Also reads those of the topics that come next and will have none soon, because one call
 * for many topics is much faster than one call each.
 */
async function readFurther(
  entries: EntryIndex,
  head: Head,
  heads: readonly Head[],
  { isNewestFirst, rangeAfter }: Direction,
): Promise<void> {
  const read = [head];
  let wanted = head.idsAhead;
  const last = Math.max(0, heads.length - MAX_EXAMINED);
  for (let n = heads.length - 1; n >= last && read.length < MAX_READ_TOGETHER; n--) {
    const other = heads[n];
    if (other === undefined || other.ended || other.at + 1 < other.ids.length) continue;
    wanted += other.idsAhead;
    if (wanted > MAX_IDS_AT_ONCE) break;
    read.push(other);
  }
  const ranges = read.map(({ topic, ids, idsAhead }) => ({
    topic,
    ...rangeAfter(ids.at(-1)?.entryId ?? ""),
    limit: idsAhead,
  }));
  const found = await entries.listIds(ranges, isNewestFirst);
  for (const [n, one] of read.entries()) {
    const { ids, ended } = found[n] ?? NO_IDS;
    one.ids = [...one.ids.slice(one.at), ...ids];
    one.at = 0;
    one.ended = ended;
    one.idsAhead = Math.min(2 * one.idsAhead, MAX_IDS_AT_ONCE);
  }
}

const NO_IDS: EntryIds = { ids: [], ended: true };

/** Divides the ids that a first read lists between the topics. */
const computeIdsAhead = (all: number, topics: number): number => Math.ceil(all / Math.max(1, topics));

const createHead = (topic: string, { ids, ended }: EntryIds, idsAhead: number): Head => ({
  topic,
  ids,
  at: 0,
  ended,
  idsAhead,
  key: sortKeyAt(ids, 0),
});

function compareHeads(a: Head, b: Head): number {
  if (a.key !== b.key) return a.key < b.key ? -1 : 1;
  return a.topic < b.topic ? -1 : Number(a.topic > b.topic);
}

/** Returns an entry id with both numbers padded to a fixed length, so that ids sort correctly as text. */
function sortKeyAt(ids: readonly ListedId[], at: number): string {
  const [ms = "", sequence = ""] = (ids[at]?.entryId ?? "").split("-");
  return `${ms.padStart(20, "0")}-${sequence.padStart(20, "0")}`;
}

/** Finds the place of a head by binary search. `heads` are sorted in reverse order. */
function findInsertIndex(
  heads: readonly Head[],
  head: Head,
  comesAfter: (head: Head, other: Head) => boolean,
): number {
  let low = 0;
  let high = heads.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const other = heads[middle];
    if (other !== undefined && comesAfter(other, head)) low = middle + 1;
    else high = middle;
  }
  return low;
}
