import type { ColumnType, Generated } from "kysely";
import type { Json, Timestamp } from "./columns.ts";

/** One row: what all gateways of one database share. */
export interface ClusterTable {
  singleton: Generated<boolean>;
  masterKeyId: string;
  masterKeyCheck: string;
  sealedChannelIdKey: string;
  sealedAccessTokenKey: ColumnType<string | null, never, string>;
  /** What the first start has made; null until then. */
  organizationId: ColumnType<string | null, never, string>;
  spaceId: ColumnType<string | null, never, string>;
  accountId: ColumnType<string | null, never, string>;
  createdAt: Timestamp;
}

/** At most one row, until somebody was told. */
export interface UntoldFirstStartTable {
  singleton: Generated<boolean>;
  sealedFacts: string;
}

export interface ChangesTable {
  id: Generated<number>;
  xid: ColumnType<string, never, never>;
  kind: string;
  key: string;
  createdAt: ColumnType<Date, never, never>;
}

/** One row: transactions below `xid` were all finished at `at`. */
export interface ChangesPrunedTable {
  singleton: Generated<boolean>;
  xid: string;
  at: ColumnType<Date, never, never>;
}

/** What a deleted row leaves behind on the bus, until it is cleared away there. */
export interface RemovalsTable {
  id: Generated<number>;
  removal: Json<unknown>;
  createdAt: Timestamp;
}

/** What one gateway at a time may do, and until when it is one's. */
export interface LeasesTable {
  name: string;
  holder: string;
  expiresAt: Timestamp;
}

/** What a creating request was answered, by the key that its client gave it. */
export interface IdempotencyKeysTable {
  organizationId: string;
  accountId: string;
  key: string;
  /** SHA-256 of what was asked for. */
  request: Buffer;
  /** Null while the first request is under way, or when nobody knows what became of it. */
  sealedAnswer: string | null;
  createdAt: Timestamp;
}
