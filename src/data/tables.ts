import type { ColumnType, Generated, Selectable } from "kysely";
import type { ChannelKindName, ChannelState } from "../event/channel.ts";
import type { Definition } from "../event/definition.ts";
import type { HandlerAttempt } from "../event/handler.ts";
import type { ProblemAbout, ProblemKind, ProblemSeverity, ProblemState } from "../event/problem.ts";
import type { AuditAction, AuditEntity } from "./accounts/audit-entry.ts";
import type { LimitName } from "./accounts/limits.ts";
import type { Json, Timestamp, Timestamps } from "./columns.ts";

/** One channel of a blueprint, defaults filled in. */
export interface BlueprintChannel {
  readonly uid: string;
  readonly kind: ChannelKindName;
  readonly title: string | null;
  readonly config: Readonly<Record<string, unknown>>;
  readonly events: readonly Definition[];
}

interface ChannelsTable extends Timestamps {
  /** Names the channel for good: dedupe, quarantine and the change feed go by it. */
  number: Generated<number>;
  /** By which the address, a credential, is looked up; null beside `id`: a program from before has given it. */
  addressHash: ColumnType<Buffer | null, Buffer, Buffer>;
  sealedAddress: ColumnType<string | null, string, string>;
  /** The address as it is, while programs from before may run that know no other column. */
  id: string | null;
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
  /** True for one that fetches, once it has begun to. */
  hasBegun: Generated<boolean>;
  /** Counts the writes: an update replaces the version that it was made from. */
  version: Generated<number>;
  /** Of the system app: Inlet alone publishes to it. */
  isSystem: Generated<boolean>;
}

/** Addresses that a channel had before, each until it ends; the present one is the channel's id. */
interface ChannelAddressesTable {
  addressHash: ColumnType<Buffer | null, Buffer, Buffer>;
  /** As a channel's. */
  id: string | null;
  channelNumber: number;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** The topics of a channel's definitions. A row outlives its channel until its stream is empty. */
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
  /** Since when nothing publishes to it; null: in use. */
  retiredAt: ColumnType<Date | null, Date | null, Date | null>;
}

/** One change that somebody made. */
interface AuditTable {
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

/** `needsReauth`: its grant is refused for good, or none was given yet. `error`: its issuer refuses the settings. */
export const CONNECTION_STATES = ["ok", "needsReauth", "error"] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** Tokens that a connection's issuer has given. */
interface ConnectionTokensTable {
  connectionId: string;
  /** Counts what was given. */
  generation: number;
  sealedTokens: string | null;
  renewAt: ColumnType<Date | null, never, Date | null>;
  connectionVersion: number;
  leaseHolder: string | null;
  leaseExpiresAt: ColumnType<Date | null, never, Date | null>;
  refusedAt: ColumnType<Date | null, never, Date | null>;
  /** True from when an issuer is asked until its answer is stored, or that there was none. */
  asking: ColumnType<boolean, never, boolean>;
  /** When an answer was lost that may have held the refresh token which works from then on. */
  answerLostAt: ColumnType<Date | null, never, Date | null>;
}

/** An authorization that a person was sent off to give. */
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
  /** Retention takes soon what it has not read. */
  retentionAtRisk: Generated<boolean>;
  /** Its handler does not take what it is sent. */
  handlerFailing: Generated<boolean>;
  /** Its handler's newest failure. */
  handlerError: ColumnType<HandlerError | null, string | null | undefined, string | null>;
  /** As the caller gave it: `now`, `earliest` or a time. */
  startAt: string;
  /** The start on the bus: milliseconds by Redis time; 0 = earliest. */
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

/** One row: what all gateways of one database share. */
interface ClusterTable {
  singleton: Generated<boolean>;
  masterKeyId: string;
  masterKeyCheck: string;
  sealedChannelIdKey: string;
  sealedAccessTokenKey: ColumnType<string | null, never, string>;
  /** Made by the first start; null until then. */
  organizationId: ColumnType<string | null, never, string>;
  spaceId: ColumnType<string | null, never, string>;
  accountId: ColumnType<string | null, never, string>;
  /** When a gateway first saw what organizations hold; null until then. */
  limitedSince: ColumnType<Date | null, never, Date>;
  /** The default by which organizations were last given what they held; null: two GiB. */
  limitedToBytes: ColumnType<number | null, never, number>;
  /** True while programs may run that know channels' addresses as they are only. */
  plainAddresses: boolean;
  createdAt: Timestamp;
}

/** At most one row, until somebody was told. */
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

/** One row: transactions below `xid` were all finished at `at`. */
interface ChangesPrunedTable {
  singleton: Generated<boolean>;
  xid: string;
  at: ColumnType<Date, never, never>;
}

/** Keys that deleted rows have left on the bus, until they are cleared away there. */
interface RemovalsTable {
  id: Generated<number>;
  removal: Json<unknown>;
  createdAt: Timestamp;
}

/** Work that one gateway does at a time, and until when it is its own. */
interface LeasesTable {
  name: string;
  holder: string;
  expiresAt: Timestamp;
}

/** Answers to creating requests, by the keys that their clients gave them. */
interface IdempotencyKeysTable {
  organizationId: string;
  accountId: string;
  key: string;
  /** SHA-256 of what was asked for. */
  request: Buffer;
  /** Null while the first request is under way, or when nobody knows what became of it. */
  sealedAnswer: string | null;
  createdAt: Timestamp;
}

/** The code that a schema was compiled to. */
interface SchemaCodeTable {
  digest: string;
  generator: string;
  cost: number;
  patternSize: number;
  /** gzip. */
  code: Buffer;
  bytes: number;
  mac: Buffer;
  usedAt: Timestamp;
}

/** Limits of organizations that are not the gateway's own. */
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

/** Refused requests, counted by the hour; what is not known of a caller is empty. */
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

/** Something that is wrong with what an organization has, or was. */
interface ProblemsTable {
  id: string;
  organizationId: string;
  kind: ProblemKind;
  /** Names what it is about: one problem of a kind is open for it at most. */
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

/** Changes of problems' states that are still to be published. */
interface ProblemEventsTable {
  number: Generated<number>;
  problemId: string;
  organizationId: string;
  type: string;
  /** JSON. */
  data: string;
  createdAt: Timestamp;
}

/** When problems of a kind were last looked for. */
interface ProblemLooksTable {
  kind: ProblemKind;
  lookedAt: ColumnType<Date | null, Date | null, Date>;
  failingSince: ColumnType<Date | null, Date | null, Date | null>;
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

/** A row as a query answers it. */
export type Row<T extends keyof Tables> = Selectable<Tables[T]>;
export type AppRow = Row<"apps">;
export type BlueprintRow = Row<"blueprints">;
export type ConnectionRow = Row<"connections">;
export type ChannelRow = Selectable<ChannelsTable>;
export type TopicRow = Selectable<TopicsTable>;
