import { sql } from "kysely";
import { parseJson } from "../../event/parse-json.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import type { Row } from "../tables.ts";
import { writeConnectionState } from "./connections.ts";

export interface IssuedTokens {
  /** `undefined` if the connection cannot use the issuer's access token. */
  readonly accessToken?: string | undefined;
  /** Time in ms since 1970 after which the token must be renewed before use. `undefined` if the issuer states no expiry. */
  readonly renewAtMs: number | undefined;
  readonly refreshToken: string | undefined;
}

export interface StoredTokens {
  /** Number of token responses stored for this connection so far. */
  readonly generation: number;
  /** `undefined` if no token was received since the connection's config last changed. */
  readonly accessToken: string | undefined;
  readonly renewAtMs: number | undefined;
  readonly refreshToken: string | undefined;
  /** Time in ms since 1970 when the issuer last rejected a renewal permanently. `undefined` if tokens were received since then. */
  readonly rejectedAtMs: number | undefined;
}

/**
 * The exclusive right of one worker to request new tokens. It ends when its lease expires or is released, or when newer tokens are
 * stored.
 */
export interface RenewalTurn {
  readonly connectionId: string;
  readonly generation: number;
  readonly holder: string;
}

interface Sealed {
  readonly accessToken?: string;
  readonly refreshToken?: string;
}

const NONE: StoredTokens = {
  generation: 0,
  accessToken: undefined,
  renewAtMs: undefined,
  refreshToken: undefined,
  rejectedAtMs: undefined,
};

export async function readTokens(
  db: Queryable,
  keyring: Keyring,
  connection: { readonly id: string; readonly version: number },
): Promise<StoredTokens> {
  const row = await db
    .selectFrom("connectionTokens")
    .selectAll()
    .where("connectionId", "=", connection.id)
    .executeTakeFirst();
  if (row === undefined) return NONE;
  const { accessToken, refreshToken } = open(keyring, row);
  const isCurrent = row.connectionVersion === connection.version;
  return {
    generation: row.generation,
    accessToken: isCurrent ? accessToken : undefined,
    renewAtMs: row.renewAt?.getTime(),
    refreshToken,
    rejectedAtMs: row.refusedAt?.getTime(),
  };
}

/**
 * Claims the right to request tokens for `leaseMs`, by PostgreSQL's clock. Returns false if another worker holds the claim, or if
 * newer tokens were stored.
 *
 * Once the lease of a dead worker has expired, another worker can claim it. The dead worker may have lost a response of the
 * issuer, so the claim records that possibility.
 */
export async function claimRenewal(db: Queryable, turn: RenewalTurn, leaseMs: number): Promise<boolean> {
  const { rows } = await sql`
    INSERT INTO connection_tokens AS t
      (connection_id, generation, connection_version, lease_holder, lease_expires_at, asking)
    VALUES (${turn.connectionId}, 0, 0, ${turn.holder},
      clock_timestamp() + make_interval(secs => ${leaseMs / 1000}), true)
    ON CONFLICT (connection_id) DO UPDATE
      SET lease_holder = excluded.lease_holder, lease_expires_at = excluded.lease_expires_at, asking = true,
        answer_lost_at = CASE WHEN t.asking THEN clock_timestamp() ELSE t.answer_lost_at END
      WHERE t.generation = ${turn.generation}
        AND (t.lease_holder IS NULL OR t.lease_expires_at < clock_timestamp())
    RETURNING connection_id`.execute(db);
  return rows.length > 0;
}

/**
 * Gives up the right to request tokens, without new tokens. No worker can claim it again for `restMs`, so that a failing issuer is
 * not called too often.
 *
 * @param options.isAnswerLost whether the issuer may have sent tokens that did not arrive
 */
export async function yieldRenewal(
  db: Queryable,
  turn: RenewalTurn,
  { restMs, isAnswerLost }: { readonly restMs: number; readonly isAnswerLost: boolean },
): Promise<void> {
  await sql`
    UPDATE connection_tokens
    SET lease_expires_at = clock_timestamp() + make_interval(secs => ${restMs / 1000}), asking = false,
      answer_lost_at = CASE WHEN ${isAnswerLost} THEN clock_timestamp() ELSE answer_lost_at END
    WHERE connection_id = ${turn.connectionId} AND lease_holder = ${turn.holder}`.execute(db);
}

/**
 * Stores new tokens, unless newer tokens are already stored. Also accepts tokens from a worker whose claim has expired, because
 * they may contain the only valid refresh token. Without an access token, the worker keeps its claim and can record a rejection.
 *
 * @param options.connectionVersion version of the connection's config that the token request used
 * @returns true if the tokens were stored
 */
export async function storeTokens(
  trx: Trx,
  keyring: Keyring,
  turn: Pick<RenewalTurn, "connectionId" | "generation">,
  tokens: IssuedTokens,
  { connectionVersion, nowMs }: { readonly connectionVersion: number; readonly nowMs: number },
): Promise<boolean> {
  const generation = turn.generation + 1;
  const { accessToken, refreshToken, renewAtMs } = tokens;
  const sealed: Sealed = { ...(accessToken && { accessToken }), ...(refreshToken && { refreshToken }) };
  const isUsable = accessToken !== undefined;
  const stored = await trx
    .updateTable("connectionTokens")
    .set({
      generation,
      sealedTokens: keyring.seal(JSON.stringify(sealed), tokensPlace(turn.connectionId, generation)),
      renewAt: renewAtMs === undefined ? null : new Date(renewAtMs),
      connectionVersion,
      ...(isUsable && { leaseHolder: null, leaseExpiresAt: null, refusedAt: null }),
      ...ANSWERED,
    })
    .where("connectionId", "=", turn.connectionId)
    .where("generation", "=", turn.generation)
    .returning("generation")
    .executeTakeFirst();
  if (stored === undefined) return false;
  if (isUsable) await writeConnectionState(trx, turn.connectionId, { state: "ok" }, nowMs);
  return true;
}

const ANSWERED = { asking: false, answerLostAt: null } as const;

/**
 * A permanent rejection by the token issuer. `needsReauth` means that the grant was rejected, `error` that the client or its
 * settings were.
 */
export interface TokenRejection {
  readonly state: "needsReauth" | "error";
  readonly code: string;
  /** Sentence for users. */
  readonly message: string;
}

/**
 * Records a permanent rejection by the issuer, if the claim is still valid and no newer tokens were stored.
 *
 * @returns true if the grant was rejected and an earlier response was lost, which may have contained the valid refresh token
 */
export async function recordRejection(
  trx: Trx,
  turn: RenewalTurn,
  { state, code, message }: TokenRejection,
  nowMs: number,
): Promise<boolean> {
  const noted = await trx
    .updateTable("connectionTokens")
    .set({ refusedAt: new Date(nowMs), leaseHolder: null, leaseExpiresAt: null, asking: false })
    .where("connectionId", "=", turn.connectionId)
    .where("generation", "=", turn.generation)
    .where("leaseHolder", "=", turn.holder)
    .returning("answerLostAt")
    .executeTakeFirst();
  if (noted === undefined) return false;
  const isTokenLost = state === "needsReauth" && noted.answerLostAt !== null;
  const error = isTokenLost
    ? { code: "token_lost", message: tokenLost(code, noted.answerLostAt) }
    : { code, message };
  await writeConnectionState(trx, turn.connectionId, { state, error }, nowMs);
  return isTokenLost;
}

const tokenLost = (code: string, at: Date | null): string =>
  `The issuer rejected the refresh token (${code}). An earlier response, which may have contained the next refresh token, was lost before Inlet could store it (noticed at ${at?.toISOString()}), because a worker stopped or the network failed. Authorize the connection again, or set a new refresh token.`;

/**
 * Deletes all tokens of a connection, because its grant or its client is being replaced. Tokens from unfinished requests will not
 * be stored.
 *
 * @returns the new generation
 */
export async function forgetTokens(trx: Trx, connectionId: string): Promise<number> {
  const { rows } = await sql<{ generation: number }>`
    INSERT INTO connection_tokens AS t (connection_id, generation, connection_version) VALUES (${connectionId}, 0, 0)
    ON CONFLICT (connection_id) DO UPDATE
      SET generation = t.generation + 1, sealed_tokens = NULL, renew_at = NULL, lease_holder = NULL,
          lease_expires_at = NULL, refused_at = NULL, asking = false, answer_lost_at = NULL
    RETURNING generation`.execute(trx);
  return rows[0]?.generation ?? 0;
}

/**
 * Clears a recorded rejection by the issuer, because its cause may be fixed. The next use of the connection then requests tokens
 * immediately.
 */
export async function clearRejection(trx: Trx, connectionId: string): Promise<void> {
  await trx
    .updateTable("connectionTokens")
    .set({ refusedAt: null })
    .where("connectionId", "=", connectionId)
    .execute();
}

function open(keyring: Keyring, row: Row<"connectionTokens">): Sealed {
  if (row.sealedTokens === null) return {};
  return parseJson(keyring.open(row.sealedTokens, tokensPlace(row.connectionId, row.generation))) as Sealed;
}

/** Encryption context (AAD) that binds encrypted tokens to their connection and generation. */
export const tokensPlace = (connectionId: string, generation: number): string =>
  `connections/${connectionId}/tokens/${generation}`;
