/** Event as listed by the API. It can contain additional attributes that the sender has set. */
export interface Event {
  readonly id: string;
  readonly type: string;
  readonly source: string;
  readonly topic: string;
  readonly entryId: string;
  readonly data?: unknown;
  readonly data_base64?: string;
}

type Place = Pick<Event, "topic" | "entryId">;

/** Joins topic and entry id with a slash. Entry ids contain no slash, so the last slash separates both. */
export const placeOf = ({ topic, entryId }: Place): string => `${topic}/${entryId}`;

/** Returns the time at which Redis stored the event, from the entry id. */
export const timeOf = ({ entryId }: Pick<Place, "entryId">): number => Number.parseInt(entryId, 10);

/** Extracts the app id, the sixth part of a topic name. Ids and uids contain no dots. */
export const appOf = ({ topic }: Pick<Place, "topic">): string => topic.split(".", 6)[5] ?? "";

/** Extracts the channel uid, the seventh part of a topic name. */
export const channelOf = ({ topic }: Pick<Place, "topic">): string => topic.split(".", 7)[6] ?? "";
