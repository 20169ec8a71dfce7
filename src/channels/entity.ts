import type { ChannelRow } from "../data/tables.ts";
import type { ChannelKindName } from "../event/channel.ts";
import { formatTimestamp } from "../lib/clock.ts";
import type { ChannelKind } from "./kind.ts";

export interface EntityDeps {
  readonly channelKinds: ReadonlyMap<ChannelKindName, ChannelKind>;
  /** What stands before `/hooks/{channelId}` in a channel's address. */
  readonly hooksUrl: () => string;
}

/** The channel as the API answers it: never with a secret setting. */
export function renderChannel({ channelKinds, hooksUrl }: EntityDeps, row: ChannelRow) {
  const addressed = channelKinds.get(row.kind)?.addressed === true;
  return {
    id: row.id,
    uid: row.uid,
    appId: row.appId,
    organizationId: row.organizationId,
    kind: row.kind,
    title: row.title,
    config: row.config,
    events: row.events,
    connectionId: row.connectionId,
    state: row.state,
    url: addressed ? `${hooksUrl()}/hooks/${row.id}` : null,
    createdAt: formatTimestamp(row.createdAt.getTime()),
    updatedAt: formatTimestamp(row.updatedAt.getTime()),
  };
}
