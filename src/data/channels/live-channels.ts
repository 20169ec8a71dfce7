import { sql } from "kysely";
import type { ChannelIdentity, ChannelState } from "../../event/channel.ts";
import type { Definition } from "../../event/definition.ts";
import { batched } from "../../lib/batched.ts";
import type { Queryable } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import type { ChannelRow } from "../tables.ts";
import { hashOfAddress } from "./address-columns.ts";
import { findFormerAddress } from "./channel-addresses.ts";
import { openSettings } from "./channel-secrets.ts";
import { identityOf } from "./channels.ts";
import { wantedAmong } from "./sources.ts";

/** A channel as the way of events needs it, secrets opened: never to be logged or answered. */
export interface StoredChannel {
  readonly identity: ChannelIdentity;
  /** Of the row: another one after each write. */
  readonly version: number;
  readonly state: ChannelState;
  /** The pause whose deliveries are not all through: what comes now stands behind them. */
  readonly pause: number | undefined;
  /**
   * The whole of the kind's settings, secret ones included, as they were when written: the kind's schema fills in defaults
   * of settings that are younger.
   */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly definitions: readonly Definition[];
  /** The names of its topics, by type. */
  readonly topics: ReadonlyMap<string, string>;
  readonly connectionId: string | null;
}

/** A channel with the address by which it was found. */
export interface AddressedChannel {
  readonly channel: StoredChannel;
  /** How long the address goes on: it is one of before. Undefined: as long as the channel. */
  readonly leftMs: number | undefined;
}

/** A channel that should fetch. */
export interface LiveSource {
  readonly channel: StoredChannel;
  /** All that were ever written for it, those that it no longer publishes to included. */
  readonly topics: readonly string[];
  /** True where it is noted that it has begun to run. */
  readonly hasBegun: boolean;
}

/** Looks up channels of any organization: for the way of events, which is let in by the channel's address alone. */
export interface LiveChannels {
  /** The channel behind an address; undefined where there is none. @throws UnavailableError */
  readonly findById: (channelId: string) => Promise<AddressedChannel | undefined>;
  /** @throws UnavailableError */
  readonly findByNumber: (number: number) => Promise<StoredChannel | undefined>;
  /** The channel with this number, where it should fetch by its subscriptions and its settings. @throws UnavailableError */
  readonly findSource: (number: number) => Promise<LiveSource | undefined>;
}

export function createLiveChannels(deps: {
  readonly db: Queryable;
  readonly keyring: Keyring;
}): LiveChannels {
  const { db, keyring } = deps;
  const topics = sql<Readonly<Record<string, string>> | null>`
    (SELECT jsonb_object_agg(t.type, t.topic) FROM topics AS t WHERE t.channel_number = channels.number)`;
  const allTopics = sql<readonly string[]>`
    ARRAY(SELECT t.topic FROM topics AS t WHERE t.channel_number = channels.number ORDER BY t.topic)`;
  // To those of the system app nothing is sent, and nothing is tried: Inlet alone publishes there.
  const channels = db
    .selectFrom("channels")
    .selectAll()
    .select(topics.as("topics"))
    .where("isSystem", "=", false);
  /** Under many channels that are called now and then, a query for each would be all that the database does. */
  const findRow = batched(async (channelIds: readonly string[]) => {
    const ids = new Map(channelIds.map((id) => [hashOfAddress(keyring, id).toString("hex"), id]));
    const hashes = [...ids.keys()].map((hex) => Buffer.from(hex, "hex"));
    const rows = await channels
      .where((eb) => eb.or([eb("addressHash", "in", hashes), eb("id", "in", channelIds)]))
      .execute();
    return new Map(
      rows.map((row) => [ids.get(row.addressHash?.toString("hex") ?? "") ?? row.id ?? "", row] as const),
    );
  }, LOOK_UPS);
  /** Thousands are polled, and begin at once where a worker takes over. */
  const findSourceRow = batched(async (numbers: readonly number[]) => {
    const rows = await channels
      .select(allTopics.as("allTopics"))
      .where("number", "in", wantedAmong(db, numbers))
      .execute();
    return new Map(rows.map((row) => [row.number, row] as const));
  }, SOURCE_LOOK_UPS);
  const findByNumber = async (number: number): Promise<StoredChannel | undefined> => {
    const row = await channels.where("number", "=", number).executeTakeFirst();
    return row && liveChannel(keyring, row);
  };
  return {
    async findById(channelId) {
      const row = await findRow(channelId);
      if (row) return { channel: liveChannel(keyring, row), leftMs: undefined };
      const former = await findFormerAddress(db, keyring, channelId);
      const channel = former && (await findByNumber(former.channelNumber));
      return channel && { channel, leftMs: former.leftMs };
    },
    findByNumber,
    async findSource(number) {
      const row = await findSourceRow(number);
      return row && { channel: liveChannel(keyring, row), topics: row.allTopics, hasBegun: row.hasBegun };
    },
  };
}

const LOOK_UPS = { maxKeys: 200, maxCalls: 4 } as const;
/** All of one query are made ready in one turn of the event loop, 0.2 ms each where they are new here: 200 would hold up deliveries. */
const SOURCE_LOOK_UPS = { maxKeys: 25, maxCalls: 2 } as const;

type LiveRow = ChannelRow & { readonly topics: Readonly<Record<string, string>> | null };

function liveChannel(keyring: Keyring, row: LiveRow): StoredChannel {
  return {
    identity: identityOf(row),
    version: row.version,
    state: row.state,
    pause: row.pause ?? undefined,
    settings: { ...row.config, ...openSettings(keyring, row) },
    definitions: row.events,
    topics: new Map(Object.entries(row.topics ?? {})),
    connectionId: row.connectionId,
  };
}
