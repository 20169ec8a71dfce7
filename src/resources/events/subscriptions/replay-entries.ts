import { compareEntryIds } from "../../../bus/entry-id.ts";
import type { EntryIndex } from "../../../bus/topics/entry-index.ts";
import { mergeEntries } from "../../../bus/topics/entry-merge.ts";
import type { EntryPlace } from "../../../bus/topics/entry-place.ts";
import type { Topics } from "../../../bus/topics/topics.ts";
import type { Queryable } from "../../../data/database.ts";
import { notFound } from "../../../http/errors.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { formatPlace, MAX_COUNTED, type ReplayInput } from "./schema.ts";

/** Entries to replay: up to `limit` places, and the number of all matching entries. */
export interface Selected {
  readonly matched: number;
  readonly places: readonly EntryPlace[];
}

const CONCURRENCY = 16;

/** Finds the entries of a subscription in a time range, optionally of one type. The oldest come first. */
export async function findRange(
  { db, entries }: { readonly db: Queryable; readonly entries: EntryIndex },
  { appId, topics }: { readonly appId: string; readonly topics: readonly string[] },
  { from, to, types, after, limit }: ReplayInput,
): Promise<Selected> {
  if (to !== undefined && to <= 0) return { matched: 0, places: [] };
  const wanted = types === undefined ? topics : await ofTypes(db, appId, topics, types);
  const range = {
    from: from === undefined ? "-" : String(Math.max(0, from)),
    to: to === undefined ? "+" : String(to - 1),
  };
  const places: EntryPlace[] = [];
  let matched = 0;
  for await (const place of mergeEntries(entries, wanted, range, after)) {
    if (places.length < limit) places.push(place);
    if (++matched >= MAX_COUNTED) break;
  }
  return { matched, places };
}

/** Finds the entries with the given ids. @throws ApiError 404 if one of them is not on a topic of the subscription */
export async function findNamed(
  { topics }: { readonly topics: Pick<Topics, "findEntry"> },
  covered: readonly string[],
  named: readonly EntryPlace[],
  after?: EntryPlace,
): Promise<Selected> {
  const ours = new Set(covered);
  const places = [...new Map(named.map((place) => [formatPlace(place), place])).values()]
    .filter((place) => after === undefined || comparePlaces(place, after) > 0)
    .sort(comparePlaces);
  await mapBounded(places, CONCURRENCY, async ({ topic, entryId }) => {
    if (!ours.has(topic) || !(await topics.findEntry(topic, entryId))) throw notFound("event");
  });
  return { matched: places.length, places };
}

/** Compares entries in the order that `mergeEntries` uses. */
const comparePlaces = (a: EntryPlace, b: EntryPlace): number =>
  compareEntryIds(a.entryId, b.entryId) || (a.topic < b.topic ? -1 : Number(a.topic > b.topic));

async function ofTypes(
  db: Queryable,
  appId: string,
  topics: readonly string[],
  types: readonly string[],
): Promise<readonly string[]> {
  if (topics.length === 0) return [];
  const rows = await db
    .selectFrom("topics")
    .select("topic")
    .where("appId", "=", appId)
    .where("type", "in", types)
    .where("topic", "in", topics)
    .execute();
  return rows.map(({ topic }) => topic);
}
