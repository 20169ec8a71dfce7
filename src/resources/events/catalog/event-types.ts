import type { Queryable } from "../../../data/database.ts";
import type { Definition } from "../../../event/definition.ts";
import { conflict } from "../../../http/errors.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { getChannel } from "../../apps/app-channel.ts";
import type { AppScope } from "../../apps/app-scope.ts";
import type { Deps } from "../../kit/deps.ts";
import { listPage, omitUndefined } from "../../kit/list-page.ts";

/** An event type of an app, with the definition that publishes it. */
export interface EventType {
  readonly channelNumber: number;
  readonly channelUid: string;
  readonly type: string;
  readonly topic: string;
  readonly definition: Definition;
}

interface Filter {
  /** Id or uid of a channel. Selects its event types. */
  readonly channel?: string | undefined;
}

type TypesDeps = Pick<Deps, "db" | "keyring">;

/** Number of channels whose definitions are in memory at the same time. */
const CHANNELS_AT_ONCE = 4;

/** Maximum number of event types in a document about a whole app. */
const MAX_TYPES = 1_000;
/** Maximum length of the schemas in a response, in characters of JSON. */
const MAX_SCHEMA_CHARACTERS = 4 * 1024 * 1024;

/**
 * Returns a page of the app's event types, ordered by channel, then type. The page has fewer types than `limit`, but at least one, if their
 * schemas exceed `MAX_SCHEMA_CHARACTERS`.
 * @throws ApiError 404 if the app has no such channel
 */
export async function listEventTypes(
  { db, keyring }: TypesDeps,
  scope: AppScope,
  { channel }: Filter,
  page: Page,
): Promise<Listed<EventType>> {
  const channelUid = channel && (await getChannel(db, keyring, scope, channel)).uid;
  const active = db
    .selectFrom("topics")
    .select(["channelNumber", "channelUid", "type", "topic"])
    .where((eb) => eb.and(omitUndefined({ ...scope, channelUid })))
    .where("retiredAt", "is", null);
  const { items: rows, total } = await listPage(active, page, ["channelUid", "type"]);
  const numbers = [...new Set(rows.map(({ channelNumber }) => channelNumber))];
  const items: EventType[] = [];
  let characters = 0;
  for (let at = 0; at < numbers.length; at += CHANNELS_AT_ONCE) {
    const part = new Set(numbers.slice(at, at + CHANNELS_AT_ONCE));
    const definitions = await readDefinitions(db, part);
    for (const row of rows.filter(({ channelNumber }) => part.has(channelNumber))) {
      const definition = definitions.get(row.channelNumber)?.get(row.type);
      // A concurrent change of the channel may have removed the definition.
      if (definition === undefined) continue;
      characters += JSON.stringify(definition.schema ?? null).length;
      if (characters > MAX_SCHEMA_CHARACTERS && items.length > 0) return { items, total };
      items.push({ ...row, definition });
    }
  }
  return { items, total };
}

async function readDefinitions(
  db: Queryable,
  channelNumbers: ReadonlySet<number>,
): Promise<ReadonlyMap<number, ReadonlyMap<string, Definition>>> {
  const rows = await db
    .selectFrom("channels")
    .select(["number", "events"])
    .where("number", "in", [...channelNumbers])
    .execute();
  return new Map(
    rows.map(({ number, events }) => [number, new Map(events.map((one) => [one.type, one] as const))]),
  );
}

/**
 * Returns all event types of an app or a channel, for a document about all of them.
 * @throws ApiError 404 if the app has no such channel; 409 if the types exceed `MAX_TYPES` or `MAX_SCHEMA_CHARACTERS`
 */
export async function getAllEventTypes(
  deps: TypesDeps,
  scope: AppScope,
  filter: Filter,
): Promise<readonly EventType[]> {
  const page = { limit: MAX_TYPES, offset: 0 };
  const { items, total } = await listEventTypes(deps, scope, filter, page);
  const advice =
    filter.channel === undefined
      ? "Select a channel with the parameter `channel`."
      : "Read them page by page with `GET …/catalog`.";
  if (total > MAX_TYPES)
    throw conflict(`There are ${total} event types; a document can have ${MAX_TYPES}. ${advice}`);
  if (items.length < total)
    throw conflict(`The schemas have more than ${MAX_SCHEMA_CHARACTERS} characters in total. ${advice}`);
  return items;
}

/** Condition of the 409 response, as shown in the API reference. */
export const TOO_MANY_TYPES = `the app has more than ${MAX_TYPES} event types, or their schemas are longer than ${MAX_SCHEMA_CHARACTERS} characters in total`;
