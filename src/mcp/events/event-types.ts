import {
  type AgentChannel,
  findAgentChannels,
  listAgentChannels,
} from "../../data/channels/agent-channels.ts";
import type { Queryable } from "../../data/database.ts";
import type { Definition } from "../../event/definition.ts";
import { topicOf } from "../../event/topic.ts";
import { EventsError } from "./revision.ts";

/** An event definition that is open to agents (`agents: true`). */
export interface AgentEventType {
  /**
   * `<app uid>.<channel uid>.<type>`, with the app's id instead of its uid if several apps have that uid. Spaces and other characters of the
   * type that could form sentences are percent-encoded, because clients show names to models.
   */
  readonly name: string;
  readonly appId: string;
  readonly channelUid: string;
  readonly topic: string;
  readonly definition: Definition;
}

/** Number of channels on one page of `events/list`. Their definitions are read at once. */
const CHANNELS_PER_PAGE = 20;

/** Returns one page of the organization's event types. `next` is the offset of the next page, `undefined` after the last one. */
export async function listEventTypes(
  db: Queryable,
  organizationId: string,
  offset: number,
): Promise<{ readonly types: readonly AgentEventType[]; readonly next: number | undefined }> {
  const page = { limit: CHANNELS_PER_PAGE + 1, offset };
  const rows = await listAgentChannels(db, organizationId, page);
  const shown = rows.slice(0, CHANNELS_PER_PAGE);
  return {
    types: shown.flatMap((channel) =>
      toEventTypes(organizationId, channel, channel.sameUid > 1 ? channel.appId : channel.appUid),
    ),
    next: rows.length > shown.length ? offset + shown.length : undefined,
  };
}

/**
 * Finds an event type by its name. The name with the app's id is always accepted, so that it survives the installation of a second app with
 * the same uid.
 *
 * @throws EventsError -32011
 */
export async function getEventType(
  db: Queryable,
  organizationId: string,
  name: string,
): Promise<AgentEventType> {
  for (const channel of await findAgentChannels(db, organizationId, name)) {
    const owners = channel.sameUid > 1 ? [channel.appId] : [channel.appId, channel.appUid];
    for (const owner of owners) {
      const type = toEventTypes(organizationId, channel, owner).find((one) => one.name === name);
      if (type) return type;
    }
  }
  const shown = JSON.stringify(name.slice(0, MAX_SHOWN_CHARS));
  throw new EventsError("notFound", `There is no event type ${shown}. Use a name from events/list.`, {
    kind: "event",
  });
}

const MAX_SHOWN_CHARS = 300;

const encodeType = (type: string): string => type.replace(/[^\w.:/~@+-]+/gu, encodeURIComponent);

/** Returns the event types of a channel, whose names start with the id or the uid of its app. */
const toEventTypes = (
  organizationId: string,
  { appId, channelUid, events }: AgentChannel,
  owner: string,
): readonly AgentEventType[] =>
  events
    .filter(({ agents = false }) => agents)
    .map((definition) => ({
      name: `${owner}.${channelUid}.${encodeType(definition.type)}`,
      appId,
      channelUid,
      topic: topicOf({ organizationId, appId, channelUid, type: definition.type }),
      definition,
    }));
