import type { ColumnType } from "kysely";
import type { Timestamp } from "../columns.ts";

/**
 * `needsReauth` means that the OAuth grant was permanently rejected or never given. `error` means that the issuer rejected the
 * client or its settings.
 */
export const CONNECTION_STATES = ["ok", "needsReauth", "error"] as const;
export type ConnectionState = (typeof CONNECTION_STATES)[number];

export interface ConnectionTokensTable {
  connectionId: string;
  /** Number of token responses stored for the connection so far. */
  generation: number;
  sealedTokens: string | null;
  renewAt: ColumnType<Date | null, never, Date | null>;
  connectionVersion: number;
  leaseHolder: string | null;
  leaseExpiresAt: ColumnType<Date | null, never, Date | null>;
  refusedAt: ColumnType<Date | null, never, Date | null>;
  /** Whether a token request to the issuer is in flight. Reset when the result of the request is stored. */
  asking: ColumnType<boolean, never, boolean>;
  /** Time when the gateway noticed that it lost a response of the issuer. The lost response may have contained the next refresh token. */
  answerLostAt: ColumnType<Date | null, never, Date | null>;
}

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
