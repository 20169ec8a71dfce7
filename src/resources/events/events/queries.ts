import type { z } from "zod";
import type { EntryRange } from "../../../bus/topics/entry-index.ts";
import { type EntryPlace, mergeEntries, mergeNewest } from "../../../bus/topics/entry-merge.ts";
import type { TopicEntry } from "../../../bus/topics/topics.ts";
import type { Queryable } from "../../../data/database.ts";
import { parseJson } from "../../../event/parse-json.ts";
import { invalidParameters } from "../../../http/errors.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { createPathCompiler } from "../../../normalize/paths/jsonpath.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { omitUndefined } from "../../kit/list-page.ts";
import { readEntries } from "../read-entries.ts";
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
  const wanted = wantedOf(query);
  const names = await listTopicNames(deps.db, scope, { type, channelUid: channel });
  const isWhole = from === undefined && to === undefined;
  const range = rangeOf(query);
  if (range === undefined) return { events: [], total: 0 };

  const merge = order === "newest" ? mergeNewest : mergeEntries;
  if (wanted !== undefined) {
    const found = await searchEvents(deps, merge(deps.entries, names, range), wanted, offset + limit);
    return { events: found.slice(offset), total: found.length };
  }
  const places: EntryPlace[] = [];
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

export type Wanted = (entry: TopicEntry) => boolean;

/**
 * Creates a filter on the id or content of events, or returns `undefined` if the query has none.
 * @throws ApiError 400 for a path that can select several values
 */
export function wantedOf({
  id,
  path: text,
  value,
}: Pick<z.output<typeof listQuerySchema>, "id" | "path" | "value">): Wanted | undefined {
  if (text === undefined) return id === undefined ? undefined : (entry) => hasId(entry, id);
  const compiled = createPathCompiler({ syntax: "rfc9535", item: {}, named: new Map() })(text);
  if (!compiled.ok) throw invalidParameters([{ path: "path", message: compiled.error }]);
  const { path } = compiled.value;
  if (path.kind !== "singular")
    throw invalidParameters([
      { path: "path", message: "must select one value, so it can only contain names and indexes" },
    ]);
  return (entry) => {
    if (id !== undefined && !hasId(entry, id)) return false;
    const found = valueAt(entry.fields.data, path.get);
    return value === undefined ? found !== undefined : formatScalar(found) === value;
  };
}

const hasId = ({ entryId, fields }: TopicEntry, id: string): boolean => fields.id === id || entryId === id;

/** Returns the value at a path, or `undefined` if the data has none. */
function valueAt(data: string | undefined, get: (root: unknown) => unknown): unknown {
  try {
    return data === undefined ? undefined : get(parseJson(data));
  } catch {
    return undefined;
  }
}

/** Formats a value as in the parameter `value`. Returns `undefined` for objects and arrays. */
const formatScalar = (value: unknown): string | undefined =>
  value === undefined || (typeof value === "object" && value !== null) ? undefined : String(value);

/** Searches entries and returns the matching events as JSON texts. Stops at `MAX_SEARCHED` entries or `MAX_ANSWER_CHARACTERS`. */
async function searchEvents(
  deps: Deps,
  places: AsyncIterable<EntryPlace>,
  isWanted: Wanted,
  most: number,
): Promise<readonly string[]> {
  const found: string[] = [];
  let examined = 0;
  let characters = 0;
  for await (const { topic, entry } of readEntries(deps, places)) {
    examined++;
    characters += entry?.fields.data?.length ?? 0;
    if (entry !== undefined && isWanted(entry)) found.push(eventJson(topic, entry));
    if (found.length >= most || examined >= MAX_SEARCHED || characters >= MAX_ANSWER_CHARACTERS) break;
  }
  return found;
}

/** Reads events as JSON texts. Skips entries that were deleted after they were listed. */
async function readEvents(deps: Deps, places: readonly EntryPlace[]): Promise<readonly string[]> {
  const events: string[] = [];
  let characters = 0;
  for await (const { topic, entry } of readEntries(deps, places)) {
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
