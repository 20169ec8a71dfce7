import type { ColumnType, Selectable } from "kysely";
import type { Timestamp } from "./columns.ts";

/** `needsReauth`: its grant is refused for good, or none was given yet. `error`: its issuer refuses the settings. */
export const CONNECTION_STATES = ["ok", "needsReauth", "error"] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** What the issuer of a connection's tokens has given. */
export interface ConnectionTokensTable {
  connectionId: string;
  /** Counts what was given. */
  generation: number;
  sealedTokens: string | null;
  renewAt: ColumnType<Date | null, never, Date | null>;
  connectionVersion: number;
  leaseHolder: string | null;
  leaseExpiresAt: ColumnType<Date | null, never, Date | null>;
  refusedAt: ColumnType<Date | null, never, Date | null>;
}

/** An authorization that a person was sent off to give. */
export interface ConnectionAuthorizationsTable {
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

export type ConnectionTokensRow = Selectable<ConnectionTokensTable>;
