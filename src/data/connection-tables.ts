import type { ColumnType, Generated, Selectable } from "kysely";
import type { Json, Timestamp, Timestamps } from "./columns.ts";

/** `needsReauth`: its grant is refused for good, or none was given yet. `error`: its issuer refuses the settings. */
export const CONNECTION_STATES = ["ok", "needsReauth", "error"] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

/** Credentials for other servers. */
export interface ConnectionsTable extends Timestamps {
  id: string;
  organizationId: string;
  name: string;
  kind: string;
  /** The settings without the secret ones. */
  config: Json<Readonly<Record<string, unknown>>>;
  /** The secret settings as one sealed JSON object. */
  sealedSecrets: string;
  /** As `URL.origin` spells them. */
  allowedOrigins: string[];
  state: ConnectionState;
  /** Counts the writes. */
  version: Generated<number>;
  lastUsedAt: ColumnType<Date | null, never, Date>;
}

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

export type ConnectionRow = Selectable<ConnectionsTable>;
export type ConnectionTokensRow = Selectable<ConnectionTokensTable>;
