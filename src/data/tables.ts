import type { ColumnType, Generated, Selectable } from "kysely";
import type { ChannelKindName, ChannelState } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { AuditAction, AuditEntity } from "./accounts/audit-entry.ts";
import type { Json, Timestamp, Timestamps } from "./columns.ts";
import type { ConnectionAuthorizationsTable, ConnectionTokensTable } from "./connection-tables.ts";
import type {
  ChangesPrunedTable,
  ChangesTable,
  ClusterTable,
  IdempotencyKeysTable,
  LeasesTable,
  RemovalsTable,
  UntoldFirstStartTable,
} from "./gateway-tables.ts";
import type { DeadLettersTable, SubscriptionsTable } from "./subscription-tables.ts";

/** One channel of a blueprint, defaults filled in. */
export interface BlueprintChannel {
  readonly uid: string;
  readonly kind: ChannelKindName;
  readonly title: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
}

export interface ChannelsTable extends Timestamps {
  /** Names the channel for good: dedupe, quarantine and the change feed go by it. */
  number: Generated<number>;
  /** The address, a credential. */
  id: string;
  appId: string;
  organizationId: string;
  uid: string;
  kind: ChannelKindName;
  title: string | null;
  /** The settings without the secret ones. */
  config: Json<Readonly<Record<string, unknown>>>;
  /** The secret settings as one sealed JSON object; null: none are set. */
  sealedSettings: string | null;
  events: Json<readonly Definition[]>;
  connectionId: string | null;
  state: ChannelState;
  /** The pause whose deliveries are not all through; null: nothing is kept back. A later one has the greater number. */
  pause: ColumnType<number | null, never, number | null>;
  /** False for a channel that was added to its app by hand. */
  fromBlueprint: Generated<boolean>;
  /** Counts the writes: an update replaces the version that it was made from. */
  version: Generated<number>;
}

/** Addresses that a channel had before, each until it ends; the present one is the channel's id. */
export interface ChannelAddressesTable {
  id: string;
  channelNumber: number;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** What a channel's definitions publish to. A row outlives its channel until its stream is empty. */
export interface TopicsTable {
  topic: string;
  organizationId: string;
  appId: string;
  channelNumber: number;
  channelUid: string;
  type: string;
  maxAgeSeconds: number;
  maxEntries: number;
  maxBytes: number;
  createdAt: Timestamp;
  /** Since when nothing publishes to it; null: in use. */
  retiredAt: ColumnType<Date | null, Date | null, Date | null>;
}

/** One change that somebody made. */
export interface AuditTable {
  id: string;
  organizationId: string;
  /** Null: a declared set-up. */
  accountId: string | null;
  keyId: string | null;
  requestId: string | null;
  action: AuditAction;
  entity: AuditEntity;
  /** An id; of a channel, which has none that may be shown, its app's and its uid. */
  entityId: string;
  fields: string[];
  createdAt: Timestamp;
}

/** All tables; those of standard resources, apps, blueprints and connections among them, are added beside their fields. */
export interface Tables {
  cluster: ClusterTable;
  untoldFirstStart: UntoldFirstStartTable;
  channels: ChannelsTable;
  channelAddresses: ChannelAddressesTable;
  topics: TopicsTable;
  subscriptions: SubscriptionsTable;
  changes: ChangesTable;
  changesPruned: ChangesPrunedTable;
  removals: RemovalsTable;
  leases: LeasesTable;
  idempotencyKeys: IdempotencyKeysTable;
  connectionTokens: ConnectionTokensTable;
  connectionAuthorizations: ConnectionAuthorizationsTable;
  audit: AuditTable;
  deadLetters: DeadLettersTable;
}

/** A row as a query answers it. */
export type Row<T extends keyof Tables> = Selectable<Tables[T]>;
export type AuditRow = Selectable<AuditTable>;
export type AppRow = Row<"apps">;
export type BlueprintRow = Row<"blueprints">;
export type ConnectionRow = Row<"connections">;
export type ChannelRow = Selectable<ChannelsTable>;
export type TopicRow = Selectable<TopicsTable>;
