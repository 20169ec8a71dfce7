import type { ChannelIdentity, ChannelState } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import { identityOf } from "./channel-identity.ts";
import { openSettings } from "./channel-secrets.ts";
import type { Queryable } from "./database.ts";
import type { Keyring } from "./keyring.ts";
import type { ChannelRow } from "./tables.ts";

/** A channel as the way of events needs it, secrets opened: never to be logged or answered. */
export interface LiveChannel {
  readonly id: string;
  readonly identity: ChannelIdentity;
  readonly state: ChannelState;
  /**
   * The whole of the kind's settings, secret ones included, as they were when written: the kind's schema fills in defaults
   * of settings that are younger.
   */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly definitions: readonly Definition[];
  readonly connectionId: string | null;
}

/** Looks up channels of any organization: for the way of events, which is let in by the channel's address alone. */
export interface LiveChannels {
  /** The channel behind an address; undefined where there is none. @throws UnavailableError */
  readonly findById: (channelId: string) => Promise<LiveChannel | undefined>;
  /** @throws UnavailableError */
  readonly findByNumber: (number: number) => Promise<LiveChannel | undefined>;
}

export function createLiveChannels(deps: {
  readonly db: Queryable;
  readonly keyring: Keyring;
}): LiveChannels {
  const { db, keyring } = deps;
  const channels = db.selectFrom("channels").selectAll();
  const toLive = (row: ChannelRow | undefined) => row && liveChannel(keyring, row);
  return {
    findById: async (channelId) => toLive(await channels.where("id", "=", channelId).executeTakeFirst()),
    findByNumber: async (number) => toLive(await channels.where("number", "=", number).executeTakeFirst()),
  };
}

function liveChannel(keyring: Keyring, row: ChannelRow): LiveChannel {
  return {
    id: row.id,
    identity: identityOf(row),
    state: row.state,
    settings: { ...row.config, ...openSettings(keyring, row) },
    definitions: row.events,
    connectionId: row.connectionId,
  };
}
