import { sql } from "kysely";
import type { ChannelIdentity, ChannelState } from "../../event/channel.ts";
import type { Definition } from "../../event/definition.ts";
import type { StoredRouting } from "../../event/intake.ts";
import { batched } from "../../lib/batched.ts";
import type { Queryable } from "../database.ts";
import { createRouteTargets } from "../intakes/route-targets.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { openContents, secretsIn } from "../registrations/registration-contents.ts";
import type { ChannelRow } from "../tables.ts";
import { hashOfAddress } from "./address-columns.ts";
import { findFormerAddress } from "./channel-addresses.ts";
import { openSecrets } from "./channel-secrets.ts";
import { identityOf } from "./channels.ts";
import { readDedupeChange } from "./dedupe-change.ts";
import { wantedAmong } from "./sources.ts";

/**
 * A channel with everything that processing its events requires. It contains decrypted secrets, so never log it or return it to
 * API callers.
 */
export interface StoredChannel {
  readonly identity: ChannelIdentity;
  /** Version of the row. Changes to the channel increment it. State changes reported by the running source do not. */
  readonly version: number;
  readonly state: ChannelState;
  /**
   * Number of the pause whose buffered deliveries are still being processed. New deliveries must be buffered behind them.
   * `undefined` when there are none.
   */
  readonly pause: number | undefined;
  /**
   * The whole config as stored, including secrets. Fields that later versions added are missing until the channel kind's schema sets
   * their defaults.
   */
  readonly config: Readonly<Record<string, unknown>>;
  readonly definitions: readonly Definition[];
  readonly topics: ReadonlyMap<string, string>;
  /** Versions of the definitions' schemas by event type. */
  readonly schemaVersions: ReadonlyMap<string, number>;
  readonly connectionId: string | null;
  /** Set for an intake, whose items go to the installs of its blueprint. */
  readonly routing?: StoredRouting | undefined;
  /** The last change after which the channel may not recognize earlier events. `undefined` if there was none. */
  readonly dedupeChange: { readonly atMs: number; readonly keptMs: number } | undefined;
}

export interface AddressedChannel {
  readonly channel: StoredChannel;
  /** Time in ms for which a former address stays valid. `undefined` for the current address, which does not expire. */
  readonly leftMs: number | undefined;
}

export interface LiveSource {
  readonly channel: StoredChannel;
  /** The channel whose missed events the source publishes. `undefined` if the source publishes its own, or if that channel does not exist. */
  readonly reconciled: StoredChannel | undefined;
  /** All topics that both channels have ever published to, including those of removed definitions. */
  readonly topics: readonly string[];
  readonly hasRunBefore: boolean;
}

/**
 * Finds channels in all organizations. Only event processing may use it, because a sender has no credential except the channel's
 * address.
 */
export type StoredChannels = ReturnType<typeof createStoredChannels>;

export function createStoredChannels(deps: { readonly db: Queryable; readonly keyring: Keyring }) {
  const { db, keyring } = deps;
  const topics = sql<Readonly<Record<string, string>> | null>`
    (SELECT jsonb_object_agg(t.type, t.topic) FROM topics AS t WHERE t.channel_number = channels.number)`;
  const schemaVersions = sql<Readonly<Record<string, number>> | null>`
    (SELECT jsonb_object_agg(t.type, t.schema_version) FROM topics AS t
     WHERE t.channel_number = channels.number AND t.schema_version IS NOT NULL)`;
  const allTopics = sql<readonly string[]>`
    ARRAY(SELECT t.topic FROM topics AS t WHERE t.channel_number = channels.number ORDER BY t.topic)`;
  const registrations = sql<readonly Registered[] | null>`
    (SELECT jsonb_agg(jsonb_build_object('id', r.id, 'sealedContents', r.sealed_contents))
     FROM registrations AS r WHERE r.channel_number = channels.number AND r.sealed_contents IS NOT NULL)`;
  // Exclude channels of the system app. Only Inlet publishes to them, so they accept no deliveries.
  const channels = db
    .selectFrom("channels")
    .selectAll()
    .select(topics.as("topics"))
    .select(schemaVersions.as("schemaVersions"))
    .select(registrations.as("registrations"))
    .where("isSystem", "=", false);
  /** Combine lookups into batches. If there are many rarely used channels, one query per lookup would saturate the database. */
  const findRow = batched(async (channelIds: readonly string[]) => {
    const ids = new Map(channelIds.map((id) => [hashOfAddress(keyring, id).toString("hex"), id]));
    const hashes = [...ids.keys()].map((hex) => Buffer.from(hex, "hex"));
    const rows = await channels.where("addressHash", "in", hashes).execute();
    return new Map(rows.map((row) => [ids.get(row.addressHash.toString("hex")) ?? "", row] as const));
  }, LOOK_UPS);
  /** Combine lookups into batches, because thousands of sources start at once when a worker takes over shards. */
  const findSourceRow = batched(async (numbers: readonly number[]) => {
    const rows = await channels
      .select(allTopics.as("allTopics"))
      .where("number", "in", wantedAmong(db, numbers))
      .execute();
    return new Map(rows.map((row) => [row.number, row] as const));
  }, SOURCE_LOOK_UPS);
  const findByNumber = async (number: number): Promise<StoredChannel | undefined> => {
    const row = await channels.where("number", "=", number).executeTakeFirst();
    return row && toStoredChannel(keyring, row);
  };
  /** Reads the channel and its topics in one query, so that every topic of its definitions is listed. */
  const findReconciled = (appId: string, uid: string) =>
    channels
      .select(allTopics.as("allTopics"))
      .where("appId", "=", appId)
      .where("uid", "=", uid)
      .executeTakeFirst();
  return {
    routeTargets: createRouteTargets(deps),
    /** Finds a channel by its current address or by a valid former one. @throws UnavailableError */
    async findById(channelId: string): Promise<AddressedChannel | undefined> {
      const row = await findRow(channelId);
      if (row) return { channel: toStoredChannel(keyring, row), leftMs: undefined };
      const former = await findFormerAddress(db, keyring, channelId);
      const channel = former && (await findByNumber(former.channelNumber));
      return channel && { channel, leftMs: former.leftMs };
    },
    findByNumber,
    /** Returns `undefined` if the source should not run, according to its state, config and subscriptions. @throws UnavailableError */
    async findSource(number: number): Promise<LiveSource | undefined> {
      const row = await findSourceRow(number);
      if (row === undefined) return undefined;
      const { reconciles } = row.config;
      const other = typeof reconciles === "string" ? await findReconciled(row.appId, reconciles) : undefined;
      return {
        channel: toStoredChannel(keyring, row),
        reconciled: other && toStoredChannel(keyring, other),
        topics: [...row.allTopics, ...(other?.allTopics ?? [])],
        hasRunBefore: row.hasBegun,
      };
    },
  };
}

const LOOK_UPS = { maxKeys: 200, maxCalls: 4 } as const;
/**
 * Limits of one query for sources. All of its sources are prepared in one event loop turn, at 0.2 ms per new source. A batch of
 * 200 would delay deliveries noticeably.
 */
const SOURCE_LOOK_UPS = { maxKeys: 25, maxCalls: 2 } as const;

/** Maximum number of secrets in a config. */
const MAX_SECRETS = 16;

type Registered = Parameters<typeof openContents>[1];

type StoredChannelRow = ChannelRow & {
  readonly topics: Readonly<Record<string, string>> | null;
  readonly schemaVersions: Readonly<Record<string, number>> | null;
  readonly registrations: readonly Registered[] | null;
};

function toStoredChannel(keyring: Keyring, row: StoredChannelRow): StoredChannel {
  return {
    identity: { ...identityOf(row), kind: row.routing?.kind ?? row.kind },
    version: row.version,
    state: row.state,
    pause: row.pause ?? undefined,
    config: { ...row.config, ...withRegistered(keyring, row) },
    definitions: row.events,
    topics: new Map(Object.entries(row.topics ?? {})),
    schemaVersions: new Map(Object.entries(row.schemaVersions ?? {})),
    connectionId: row.connectionId,
    routing: row.routing ?? undefined,
    dedupeChange: readDedupeChange(row),
  };
}

/** Adds the secrets with which the provider may sign because of a registration, to those of the channel's config. */
function withRegistered(keyring: Keyring, row: StoredChannelRow): Readonly<Record<string, unknown>> {
  const own = openSecrets(keyring, row);
  const values = (row.registrations ?? []).flatMap((one) => secretsIn(openContents(keyring, one)));
  if (values.length === 0) return own;
  const secrets = (own.secrets ?? []) as readonly { readonly value: string }[];
  const added = [...new Set(values)].filter((value) => !secrets.some((secret) => secret.value === value));
  // The provider signs with those of the registration, so they take precedence.
  const kept = secrets.slice(0, Math.max(0, MAX_SECRETS - added.length));
  return { ...own, secrets: [...kept, ...added.map((value) => ({ value }))].slice(0, MAX_SECRETS) };
}
