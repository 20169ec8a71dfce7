import type { z } from "zod";
import type { EntryRange } from "../../../bus/topics/entry-index.ts";
import { mergeEntries, mergeNewest } from "../../../bus/topics/entry-merge.ts";
import type { ListedEntry } from "../../../bus/topics/entry-place.ts";
import type { Queryable } from "../../../data/database.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { createEventFilter, type EventFilter } from "./event-filter.ts";
import { eventJson, type listQuerySchema, MAX_WINDOW } from "./schema.ts";

const CONCURRENCY = 16;
/** Maximum number of topics in a list request. A request that covers more topics gets a 400. */
const MAX_TOPICS = 5_000;
/** Maximum length of a response, in characters. A response with large events therefore has fewer than `limit` events, but at least one. */
export const MAX_ANSWER_CHARACTERS = 16 * 1024 * 1024;
/** Maximum number of entries that a search reads. The response contains the matches among these entries. */
export const MAX_SEARCHED = 5_000;

/**
 * Returns a page of the app's events as JSON texts, with the total count. Events are ordered by time, then id. For a
 * time range, counting stops at `MAX_WINDOW`.
 * @throws ApiError 400 if the app has too many topics
 */
export async function listEvents(
  deps: Deps,
  scope: AppScope,
  query: z.output<typeof listQuerySchema>,
): Promise<{ readonly events: readonly string[]; readonly total: number }> {
  const { type, channel, from, to, limit, offset, order } = query;
  const wanted = createEventFilter(query);
  const names = await listTopicNames(deps.db, scope, { type, channelUid: channel });
  const isWhole = from === undefined && to === undefined;
  const range = rangeOf(query);
  if (range === undefined) return { events: [], total: 0 };

  const merge = order === "newest" ? mergeNewest : mergeEntries;
  if (wanted !== undefined) {
    const found = await searchEvents(deps, merge(deps.entries, names, range), wanted, offset + limit);
    return { events: found.slice(offset), total: found.length };
  }
  const places: ListedEntry[] = [];
  let seen = 0;
  for await (const place of merge(deps.entries, names, range)) {
    if (seen >= offset && places.length < limit) places.push(place);
    seen++;
    if (seen >= (isWhole ? offset + limit : MAX_WINDOW)) break;
  }
  const counts = isWhole ? await mapBounded(names, CONCURRENCY, deps.entries.count) : [seen];
  const total = counts.reduce((sum, count) => sum + count, 0);
  return { events: await readEvents(deps, places), total };
}

/** Returns the range of entry ids, or `undefined` if it is empty. */
export function rangeOf({
  from,
  to,
}: {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}): EntryRange | undefined {
  if (to !== undefined && to <= 0) return undefined;
  return {
    from: from === undefined ? "-" : String(Math.max(0, from)),
    to: to === undefined ? "+" : String(Math.trunc(to) - 1),
  };
}

/** Searches entries and returns the matching events as JSON texts. Stops at `MAX_SEARCHED` entries or `MAX_ANSWER_CHARACTERS`. */
async function searchEvents(
  deps: Deps,
  places: AsyncIterable<ListedEntry>,
  isWanted: EventFilter,
  most: number,
): Promise<readonly string[]> {
  const found: string[] = [];
  let examined = 0;
  let characters = 0;
  for await (const { topic, entry } of deps.entries.read(places)) {
    examined++;
    characters += entry?.fields.data?.length ?? 0;
    if (entry !== undefined && isWanted(entry)) found.push(eventJson(topic, entry));
    if (found.length >= most || examined >= MAX_SEARCHED || characters >= MAX_ANSWER_CHARACTERS) break;
  }
  return found;
}

/** Reads events as JSON texts. Skips entries that were deleted after they were listed. */
async function readEvents(deps: Deps, places: readonly ListedEntry[]): Promise<readonly string[]> {
  const events: string[] = [];
  let characters = 0;
  for await (const { topic, entry } of deps.entries.read(places)) {
    if (!entry) continue;
    const json = eventJson(topic, entry);
    characters += json.length;
    events.push(json);
    if (characters >= MAX_ANSWER_CHARACTERS) break;
  }
  return events;
}

async function listTopicNames(
  db: Queryable,
  scope: AppScope,
  filters: { readonly type: string | undefined; readonly channelUid: string | undefined },
): Promise<readonly string[]> {
  const rows = await db
    .selectFrom("topics")
    .select("topic")
    .where((eb) => eb.and(omitUndefined({ ...scope, ...filters })))
    .orderBy("topic")
    .limit(MAX_TOPICS + 1)
    .execute();
  if (rows.length > MAX_TOPICS) {
    throw invalidParameters([
      { path: "type", message: `is required because the app has more than ${MAX_TOPICS} topics` },
    ]);
  }
  return rows.map(({ topic }) => topic);
}

export async function hasTopic(
  db: Queryable,
  { organizationId, appId }: AppScope,
  topic: string,
): Promise<boolean> {
  const row = await db
    .selectFrom("topics")
    .innerJoin("apps", "apps.id", "topics.appId")
    .select("topic")
    .where("topic", "=", topic)
    .where("topics.appId", "=", appId)
    .where("topics.organizationId", "=", organizationId)
    .executeTakeFirst();
  return row !== undefined;
}
