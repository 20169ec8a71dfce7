import type { ColumnType, Generated, Selectable } from "kysely";
import type { ChannelKindName, ChannelState } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import type { ProblemAbout, ProblemKind, ProblemSeverity, ProblemState } from "../event/problem.ts";
import type { AuditAction, AuditEntity } from "./accounts/audit-entry.ts";
import type { LimitName } from "./accounts/limits.ts";
import type { Json, Timestamp, Timestamps } from "./columns.ts";

/** A channel of a blueprint with defaults applied. */
export interface BlueprintChannel {
  readonly uid: string;
  readonly kind: ChannelKindName;
  readonly title: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
}

interface ChannelsTable extends Timestamps {
  /** Internal channel id, which never changes. Dedupe, quarantine and the change feed use it as their key. */
  number: Generated<number>;
  /** Hash for looking up the address, which is a credential. `null` if an earlier version stored the address in `id`. */
  addressHash: ColumnType<Buffer | null, Buffer, Buffer>;
  sealedAddress: ColumnType<string | null, string, string>;
  /** Address in plain text. Stored only while gateways of earlier versions may run, which read only this column. */
  id: string | null;
  appId: string;
  organizationId: string;
  uid: string;
  kind: ChannelKindName;
  title: string | null;
  /** Settings without secrets. */
  config: Json<Readonly<Record<string, unknown>>>;
  /** Secret settings as one sealed JSON object. `null` when there are no secrets. */
  sealedSettings: string | null;
  events: Json<readonly Definition[]>;
  connectionId: string | null;
  state: ChannelState;
  /** Number of the pause that has unprocessed buffered deliveries. `null` when there is none. Later pauses have higher numbers. */
  pause: ColumnType<number | null, never, number | null>;
  /** Whether the app's blueprint defines the channel. False for channels that were added to the app later. */
  fromBlueprint: Generated<boolean>;
  /** Whether a pull channel has started to run. */
  hasBegun: Generated<boolean>;
  /** Incremented when the channel is changed. An update applies only if the row still has the version that the update is based on. */
  version: Generated<number>;
  /** Whether the channel belongs to the system app, to which only Inlet publishes. */
  isSystem: Generated<boolean>;
}

/** Former addresses of channels that are still valid. The current address is in the channel's row. */
interface ChannelAddressesTable {
  addressHash: ColumnType<Buffer | null, Buffer, Buffer>;
  /** Address in plain text, like the column `id` of `channels`. */
  id: string | null;
  channelNumber: number;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** Topics of channel definitions. After its channel is deleted, a row stays until the topic's stream is empty. */
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
  /** Time since which no channel publishes to the topic. `null` while it is in use. */
  retiredAt: ColumnType<Date | null, Date | null, Date | null>;
}

/** Audit log entries. */
interface AuditTable {
  id: string;
  organizationId: string;
  /** `null` when the operator made the change, for example with a config file. */
  accountId: string | null;
  keyId: string | null;
  requestId: string | null;
  action: AuditAction;
  entity: AuditEntity;
  /** Id of the object. For a channel, the app's id and the channel's uid, because the channel's own id is a credential. */
  entityId: string;
  fields: string[];
  createdAt: Timestamp;
}

/**
 * States of a connection. `needsReauth` means that the grant was permanently rejected or never given. `error` means that the issuer
 * rejected the client or its settings.
 */
export const CONNECTION_STATES = ["ok", "needsReauth", "error"] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** Tokens received from the issuers of connections. */
interface ConnectionTokensTable {
  connectionId: string;
  /** Number of token responses stored so far. */
  generation: number;
  sealedTokens: string | null;
  renewAt: ColumnType<Date | null, never, Date | null>;
  connectionVersion: number;
  leaseHolder: string | null;
  leaseExpiresAt: ColumnType<Date | null, never, Date | null>;
  refusedAt: ColumnType<Date | null, never, Date | null>;
  /** Whether a token request to the issuer is in flight. Reset when the result of the request is stored. */
  asking: ColumnType<boolean, never, boolean>;
  /** Time at which Inlet noticed that a response of the issuer was lost. The response may have contained the next refresh token. */
  answerLostAt: ColumnType<Date | null, never, Date | null>;
}

/** OAuth authorizations that wait for the provider's callback. */
interface ConnectionAuthorizationsTable {
  /** SHA-256 of the state parameter. */
  stateHash: Buffer;
  connectionId: string;
  connectionVersion: number;
  accountId: string;
  keyId: string | null;
  sealedVerifier: string;
  redirectUri: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

export type HandlerError = Pick<HandlerAttempt, "at" | "status" | "code">;

interface SubscriptionsTable extends Timestamps {
  id: string;
  organizationId: string;
  appId: string;
  eventUid: string;
  connectionId: string | null;
  state: "active" | "paused";
  /** Whether retention will soon trim unread events. */
  retentionAtRisk: Generated<boolean>;
  /** Whether the handler is failing. */
  handlerFailing: Generated<boolean>;
  /** Latest failure of the handler. */
  handlerError: ColumnType<HandlerError | null, string | null | undefined, string | null>;
  /** Start as given by the caller: `now`, `earliest` or a timestamp. */
  startAt: string;
  /** Start in milliseconds by the clock of Redis. 0 means the earliest entry. */
  startMs: number;
  handler: ColumnType<unknown, string | null, string | null>;
  sealedHandlerSecret: ColumnType<string | null, string | null | undefined, string | null>;
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

/** State shared by all gateways of the database. The table has exactly one row. */
interface ClusterTable {
  singleton: Generated<boolean>;
  masterKeyId: string;
  masterKeyCheck: string;
  sealedChannelIdKey: string;
  sealedAccessTokenKey: ColumnType<string | null, never, string>;
  /** The operator's organization, created by the first start. `null` before that. */
  organizationId: ColumnType<string | null, never, string>;
  spaceId: ColumnType<string | null, never, string>;
  accountId: ColumnType<string | null, never, string>;
  /** Time at which topic limits were first applied. `null` before that. */
  limitedSince: ColumnType<Date | null, never, Date>;
  /** Default limit that applied when organizations above it last got their current size as their own limit. `null` means 2 GiB. */
  limitedToBytes: ColumnType<number | null, never, number>;
  /** Whether addresses are also stored in plain text for gateways of earlier versions. */
  plainAddresses: boolean;
  createdAt: Timestamp;
}

/** Result of the first start, until it was reported. The table has at most one row. */
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

/** Bookkeeping for deleting old changes. The table has one row: at the time `at`, all transactions below `xid` had finished. */
interface ChangesPrunedTable {
  singleton: Generated<boolean>;
  xid: string;
  at: ColumnType<Date, never, never>;
}

/** Pending removals of Redis keys that belonged to deleted rows. */
interface RemovalsTable {
  id: Generated<number>;
  removal: Json<unknown>;
  createdAt: Timestamp;
}

/** Leases for work that only one gateway does at a time. */
interface LeasesTable {
  name: string;
  holder: string;
  expiresAt: Timestamp;
}

/** Responses to requests that create objects, by the idempotency keys of their clients. */
interface IdempotencyKeysTable {
  organizationId: string;
  accountId: string;
  key: string;
  /** SHA-256 of the request. */
  request: Buffer;
  /** Response to the first request. `null` while the request is in flight, or if its result is unknown. */
  sealedAnswer: string | null;
  createdAt: Timestamp;
}

/** Compiled code of JSON Schemas. */
interface SchemaCodeTable {
  digest: string;
  generator: string;
  cost: number;
  patternSize: number;
  /** Code compressed with gzip. */
  code: Buffer;
  bytes: number;
  mac: Buffer;
  usedAt: Timestamp;
}

/** Limits set for single organizations. `null` values use the gateway's defaults. */
interface OrganizationLimitsTable extends Record<LimitName, number | null> {
  organizationId: string;
  overLimit: Generated<"refuse" | "trim">;
}

/** Events that were deleted for privacy. */
interface DeletedEventsTable {
  topic: string;
  entryId: string;
  organizationId: string;
  deletedAt: Timestamp;
}

/** Counts of rejected requests per hour. Ids are empty if the caller is unknown. */
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

/** Open and resolved problems of organizations. */
interface ProblemsTable {
  id: string;
  organizationId: string;
  kind: ProblemKind;
  /** Id of the affected object. At most one problem of a kind is open per subject. */
  subject: string;
  state: ProblemState;
  severity: ProblemSeverity;
  about: Json<ProblemAbout>;
  appId: string | null;
  message: string;
  cure: string;
  figures: Json<Readonly<Record<string, number>>>;
  firstSeenAt: Timestamp;
  lastSeenAt: Timestamp;
  acknowledgedAt: ColumnType<Date | null, never, Date>;
  acknowledgedBy: ColumnType<string | null, never, string | null>;
  resolvedAt: ColumnType<Date | null, never, Date>;
  createdAt: Timestamp;
}

/** Unpublished events about state changes of problems. */
interface ProblemEventsTable {
  number: Generated<number>;
  problemId: string;
  organizationId: string;
  type: string;
  /** Event data as JSON text. */
  data: string;
  createdAt: Timestamp;
}

/** Time of the last check for each kind of problem. */
interface ProblemLooksTable {
  kind: ProblemKind;
  lookedAt: ColumnType<Date | null, Date | null, Date>;
  failingSince: ColumnType<Date | null, Date | null, Date | null>;
}

/**
 * All database tables. Standard resources, including apps, blueprints and connections, add their tables next to their field definitions.
 */
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
  schemaCode: SchemaCodeTable;
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
}

/** A row as returned by a query. */
export type Row<T extends keyof Tables> = Selectable<Tables[T]>;
export type AppRow = Row<"apps">;
export type BlueprintRow = Row<"blueprints">;
export type ConnectionRow = Row<"connections">;
export type ChannelRow = Selectable<ChannelsTable>;
export type TopicRow = Selectable<TopicsTable>;
