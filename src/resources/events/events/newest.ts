import type { z } from "zod";
import { openNewest } from "../../../bus/topics/entry-merge.ts";
import type { EntryPlace } from "../../../bus/topics/entry-place.ts";
import { hasAddress } from "../../../data/channels/address-columns.ts";
import { invalidParameters } from "../../../http/errors.ts";
import type { PlaceFilters } from "../../apps/organization-channels.ts";
import type { Deps } from "../../kit/deps.ts";
import { createEventFilter } from "./event-filter.ts";
import { MAX_ANSWER_CHARACTERS, MAX_SEARCHED, rangeOf } from "./queries.ts";
import { eventJson, formatEventCursor, type newestEventsQuery, parseEventCursor } from "./schema.ts";

/** Maximum number of topics in a list of all apps. Each page reads the newest entry id of each topic. */
export const MAX_NEWEST_TOPICS = 10_000;

export interface NewestEvents {
  /** Events as JSON texts. */
  readonly events: readonly string[];
  /** Number of events in the selected topics, whatever their time and content. */
  readonly total: number;
  /** Cursor of the next page. `undefined` on the last page. */
  readonly next: string | undefined;
  /** Number of events that were skipped or read for this page, including those that do not match. */
  readonly scanned: number;
}

/**
 * Lists the newest events of all apps. A page costs one or two queries, and one call to Redis per 64 topics for their newest ids. It also
 * costs one call for each topic with events in a batch of up to 256 events. A search reads at most `MAX_SEARCHED` entries per page.
 *
 * @throws ApiError 400 if too many topics are selected
 */
export async function listNewestEvents(
  deps: Deps,
  organizationId: string,
  query: z.output<typeof newestEventsQuery>,
): Promise<NewestEvents> {
  const isWanted = createEventFilter(query);
  const topics = await findTopics(deps, organizationId, query);
  const range = rangeOf(query);
  if (range === undefined) return { events: [], total: 0, next: undefined, scanned: 0 };
  const after = query.cursor === undefined ? undefined : parseEventCursor(query.cursor);
  const { total, places } = await openNewest(deps.entries, topics, range, {
    after,
    skips: query.offset > 0,
  });
  const skipped = await skip(places, query.offset);
  const events: string[] = [];
  let [examined, characters] = [0, 0];
  let last: EntryPlace | undefined;
  // A list reads one entry more than a page has, to find out whether it is the last page.
  const first = isWanted === undefined ? { first: query.limit + 1 } : {};
  for await (const { topic, entryId, entry } of deps.entries.read(places, first)) {
    const isFull =
      events.length >= query.limit || examined >= MAX_SEARCHED || characters >= MAX_ANSWER_CHARACTERS;
    if (isFull && last !== undefined)
      return { events, total, next: formatEventCursor(last), scanned: skipped + examined };
    last = { topic, entryId };
    examined++;
    const { data = "", data_base64: bytes = "" } = entry?.fields ?? {};
    characters += data.length + bytes.length;
    if (entry !== undefined && (isWanted === undefined || isWanted(entry)))
      events.push(eventJson(topic, entry));
  }
  return { events, total, next: undefined, scanned: skipped + examined };
}

/** Skips up to `most` places. Returns how many there were. */
async function skip(places: AsyncIterator<EntryPlace>, most: number): Promise<number> {
  let skipped = 0;
  while (skipped < most && !(await places.next()).done) skipped++;
  return skipped;
}

/** Finds the channel with an id. Topics only have the uid of their channel. */
const findById = ({ db, keyring }: Deps, organizationId: string, id: string) =>
  db
    .selectFrom("channels")
    .select(["appId", "uid"])
    .where("organizationId", "=", organizationId)
    .where(hasAddress(keyring, id))
    .executeTakeFirst();

/** Finds the topics of existing apps. Topics of deleted channels are included as long as they have events. */
async function findTopics(
  deps: Deps,
  organizationId: string,
  filters: PlaceFilters & { readonly type?: string | undefined },
): Promise<readonly string[]> {
  const { appId, channel, type } = filters;
  const named = channel === undefined ? undefined : await findById(deps, organizationId, channel);
  const rows = await deps.db
    .selectFrom("topics")
    .innerJoin("apps", "apps.id", "topics.appId")
    .select("topics.topic")
    .where("topics.organizationId", "=", organizationId)
    .$if(appId !== undefined, (query) => query.where("topics.appId", "=", appId ?? ""))
    .$if(type !== undefined, (query) => query.where("topics.type", "=", type ?? ""))
    .$if(channel !== undefined, (query) =>
      query.where((eb) =>
        eb.or([
          eb("topics.channelUid", "=", channel ?? ""),
          ...(named === undefined
            ? []
            : [eb.and({ "topics.appId": named.appId, "topics.channelUid": named.uid })]),
        ]),
      ),
    )
    .orderBy("topics.topic")
    .limit(MAX_NEWEST_TOPICS + 1)
    .execute();
  if (rows.length <= MAX_NEWEST_TOPICS) return rows.map(({ topic }) => topic);
  const message = `is required because more than ${MAX_NEWEST_TOPICS} topics are selected; \`channel\` and \`type\` also select fewer`;
  throw invalidParameters([{ path: "appId", message }]);
}
