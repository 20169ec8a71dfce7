import type { ColumnType, Generated, Selectable } from "kysely";
import type { AgentSubscriber } from "../event/agent-subscriber.ts";
import type { ChannelKindName, ChannelState } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import type { StoredRouting } from "../event/intake.ts";
import type { AuditAction, AuditEntity } from "./accounts/audit-entry.ts";
import type { LimitName } from "./accounts/limits.ts";
import type { Json, Timestamp, Timestamps } from "./columns.ts";
import type {
  ConnectionAuthorizationsTable,
  ConnectionTokensTable,
} from "./connections/connection-tables.ts";
import type { RouteKeysTable } from "./intakes/intake-tables.ts";
import type { ProblemEventsTable, ProblemLooksTable, ProblemsTable } from "./problems/problem-tables.ts";
import type { RegistrationsTable } from "./registrations/registration-table.ts";
import type { SeriesTables } from "./series/series-tables.ts";

export interface BlueprintChannel {
  readonly uid: string;
  readonly kind: ChannelKindName;
  readonly title: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
}

interface ChannelsTable extends Timestamps {
  /** Internal channel id, which never changes. Redis keys and change notifications use this id. */
  number: Generated<number>;
  /** Hash by which the channel is found. The address itself is a credential. */
  addressHash: Buffer;
  sealedAddress: string;
  appId: string;
  organizationId: string;
  uid: string;
  kind: ChannelKindName;
  title: string | null;
  /** Config without secrets. */
  config: Json<Readonly<Record<string, unknown>>>;
  /** Secret config fields, encrypted as one JSON object. `null` if there are none. */
  sealedSettings: string | null;
  events: Json<readonly Definition[]>;
  connectionId: string | null;
  state: ChannelState;
  /** Number of the latest pause while its buffered deliveries are not all processed, otherwise `null`. Each pause gets a higher number. */
  pause: ColumnType<number | null, never, number | null>;
  /** Whether the channel comes from the blueprint of the app. False if it was added to the app separately. */
  fromBlueprint: Generated<boolean>;
  /** Last change after which the channel may not recognize events that it has received earlier. */
  dedupeChangedAt: Generated<Date | null>;
  /** Seconds for which ids from before that change are still recognized. */
  dedupeKeptSeconds: Generated<number | null>;
  /** Whether the gateway has ever fetched items for this pull channel. */
  hasBegun: Generated<boolean>;
  /** Incremented with each change of the channel. An update is rejected if the version has changed since it was read. */
  version: Generated<number>;
  /** Whether the channel belongs to the system app, so that only Inlet itself publishes to it. */
  isSystem: Generated<boolean>;
  /** Set for the intake of a blueprint. Its `appId` is the id of the blueprint, and it has no event definitions. */
  routing: ColumnType<StoredRouting | null, string | null | undefined, string>;
}

/** Former addresses of channels, which may still be valid. The current address is in `channels`. */
interface ChannelAddressesTable {
  addressHash: Buffer;
  channelNumber: number;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** Topics of event definitions. After the deletion of a channel, its rows stay until the streams of the topics are empty. */
interface TopicsTable {
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
  /** Time since which no channel publishes to the topic. `null` while a channel uses the topic. */
  retiredAt: ColumnType<Date | null, Date | null, Date | null>;
  /** Version of the definition's schema. `null` if it has none, or if an earlier version of Inlet wrote the definition. */
  schemaVersion: ColumnType<number | null, never, number | null>;
}

/** Versions of the schemas with which the events of a topic were validated. */
interface SchemaVersionsTable {
  topic: string;
  version: number;
  /** SHA-256 of the schema's text. */
  digest: Buffer;
  schema: Json<NonNullable<Definition["schema"]>>;
  createdAt: Timestamp;
}

interface AuditTable {
  id: string;
  organizationId: string;
  /** `null` if no API caller made the change, for example if it came from a config file. */
  accountId: string | null;
  keyId: string | null;
  requestId: string | null;
  action: AuditAction;
  entity: AuditEntity;
  /** Id of the changed object. For a channel, it is the app id and channel uid, because the channel's address is a credential. */
  entityId: string;
  fields: string[];
  createdAt: Timestamp;
}

export type HandlerError = Pick<HandlerAttempt, "at" | "status" | "code">;

interface SubscriptionsTable extends Timestamps {
  id: string;
  organizationId: string;
  appId: string;
  eventUid: string;
  connectionId: string | null;
  state: "active" | "paused";
  /** Whether retention will soon delete events that the subscription has not read. */
  retentionAtRisk: Generated<boolean>;
  handlerFailing: Generated<boolean>;
  handlerError: ColumnType<HandlerError | null, string | null | undefined, string | null>;
  /** Start of the subscription as the caller gave it: `now`, `earliest` or a timestamp. */
  startAt: string;
  /** Start of the subscription in ms since 1970, by the clock of Redis. 0 means the earliest event. */
  startMs: number;
  handler: ColumnType<unknown, string | null, string | null>;
  /** Signing secret of the handler, or the secrets of an agent's callback as JSON. */
  sealedHandlerSecret: ColumnType<string | null, string | null | undefined, string | null>;
  /** Set for subscriptions of agents, together with the other columns below. */
  agent: ColumnType<AgentSubscriber | null, string | null | undefined, string | null>;
  agentId: ColumnType<string | null, string | null | undefined, never>;
  agentPrincipal: ColumnType<string | null, string | null | undefined, never>;
  expiresAt: ColumnType<Date | null, Date | null | undefined, Date>;
}

interface AgentCallbacksTable {
  principal: string;
  urlHash: Buffer;
  confirmedAt: Date;
}

interface DeadLettersTable {
  id: string;
  subscriptionId: string;
  organizationId: string;
  topic: string;
  entryId: string;
  type: string;
  fields: Json<readonly string[]>;
  attempts: Json<readonly HandlerAttempt[]>;
  reason: string;
  createdAt: Timestamp;
}

/** State that all gateways on this database share. The table has exactly one row. */
interface ClusterTable {
  singleton: Generated<boolean>;
  masterKeyId: string;
  masterKeyCheck: string;
  sealedChannelIdKey: string;
  sealedAccessTokenKey: ColumnType<string | null, never, string>;
  /** Id of the organization that runs the gateway. `null` before the first start. */
  organizationId: ColumnType<string | null, never, string>;
  spaceId: ColumnType<string | null, never, string>;
  accountId: ColumnType<string | null, never, string>;
  /** Time when storage limits of topics first applied. `null` before that. */
  limitedSince: ColumnType<Date | null, never, Date>;
  /**
   * Default storage limit in bytes that existing organizations were last checked against. `null` means 2 GiB, the fixed default of
   * earlier versions.
   */
  limitedToBytes: ColumnType<number | null, never, number>;
  /** Whether earlier versions stored addresses in plain text. `migrate` seals them and sets it to false. */
  plainAddresses: boolean;
  /** Id of the marker in Redis. `null` until a gateway has written one. */
  redisMarker: ColumnType<string | null, never, string>;
  dataLostAt: ColumnType<Date | null, never, Date>;
  /** URL of the hooks with which registrations were made. `null` if there are none yet. */
  registeredHooksUrl: ColumnType<string | null, never, string>;
  createdAt: Timestamp;
}

/** Result of the first start, stored until it has been shown to the operator. The table has at most one row. */
interface UntoldFirstStartTable {
  singleton: Generated<boolean>;
  sealedFacts: string;
}

interface ChangesTable {
  id: Generated<number>;
  xid: ColumnType<string, never, never>;
  kind: string;
  key: string;
  createdAt: ColumnType<Date, never, never>;
}

/** Progress of deleting old changes: at time `at`, all transactions below `xid` had finished. The table has one row. */
interface ChangesPrunedTable {
  singleton: Generated<boolean>;
  xid: string;
  at: ColumnType<Date, never, never>;
}

interface RemovalsTable {
  id: Generated<number>;
  removal: Json<unknown>;
  createdAt: Timestamp;
}

interface LeasesTable {
  name: string;
  holder: string;
  expiresAt: Timestamp;
}

/** Responses to requests that create objects, by the client's idempotency key. */
interface IdempotencyKeysTable {
  organizationId: string;
  accountId: string;
  key: string;
  /** SHA-256 of the request, including its API key. */
  request: Buffer;
  /** Response to the first request. `null` while the first request is in flight, or if its result is unknown. */
  sealedAnswer: string | null;
  createdAt: Timestamp;
}

/** Limits of individual organizations. `null` means the default limit of the gateway. */
interface OrganizationLimitsTable extends Record<LimitName, number | null> {
  organizationId: string;
  overLimit: Generated<"refuse" | "trim">;
}

interface DeletedEventsTable {
  topic: string;
  entryId: string;
  organizationId: string;
  deletedAt: Timestamp;
}

/** Number of rejected requests per hour. The ids of an unknown caller are empty strings. */
interface AuditRefusalsTable {
  organizationId: string;
  hour: Timestamp;
  accountId: string;
  keyId: string;
  address: string;
  status: number;
  count: number;
  lastAt: Timestamp;
}

/**
 * Types of all database tables. Standard resources such as apps, blueprints and connections declare theirs next to their field
 * definitions.
 */
export interface Tables extends SeriesTables {
  cluster: ClusterTable;
  untoldFirstStart: UntoldFirstStartTable;
  channels: ChannelsTable;
  channelAddresses: ChannelAddressesTable;
  routeKeys: RouteKeysTable;
  topics: TopicsTable;
  schemaVersions: SchemaVersionsTable;
  subscriptions: SubscriptionsTable;
  agentCallbacks: AgentCallbacksTable;
  changes: ChangesTable;
  changesPruned: ChangesPrunedTable;
  removals: RemovalsTable;
  leases: LeasesTable;
  idempotencyKeys: IdempotencyKeysTable;
  connectionTokens: ConnectionTokensTable;
  connectionAuthorizations: ConnectionAuthorizationsTable;
  audit: AuditTable;
  auditRefusals: AuditRefusalsTable;
  deadLetters: DeadLettersTable;
  deletedEvents: DeletedEventsTable;
  organizationLimits: OrganizationLimitsTable;
  problems: ProblemsTable;
  problemEvents: ProblemEventsTable;
  problemLooks: ProblemLooksTable;
  registrations: RegistrationsTable;
}

export type Row<T extends keyof Tables> = Selectable<Tables[T]>;
export type AppRow = Row<"apps">;
export type BlueprintRow = Row<"blueprints">;
export type ConnectionRow = Row<"connections">;
export type ChannelRow = Selectable<ChannelsTable>;
export type TopicRow = Selectable<TopicsTable>;
