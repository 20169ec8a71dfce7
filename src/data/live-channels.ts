import type { ChannelIdentity, ChannelState } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { Queryable } from "./database.ts";
import type { Keyring } from "./keyring.ts";

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

export interface LiveChannels {
  /** The channel behind an address; undefined where there is none. @throws UnavailableError */
  readonly findById: (channelId: string) => Promise<LiveChannel | undefined>;
  /** @throws UnavailableError */
  readonly findByNumber: (number: number) => Promise<LiveChannel | undefined>;
}

export declare function createLiveChannels(deps: {
  readonly db: Queryable;
  readonly keyring: Keyring;
}): LiveChannels;
