import { sql } from "kysely";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import type { Row } from "../tables.ts";
import { writeConnectionState } from "./connections.ts";

/** Tokens of an issuer. */
export interface IssuedTokens {
  readonly accessToken: string;
  /** From when on it is renewed before it is used, in ms; undefined where the issuer does not say when it expires. */
  readonly renewAtMs: number | undefined;
  readonly refreshToken: string | undefined;
}

/** The tokens of a connection as they are stored. */
export interface StoredTokens {
  /** Counts what was given; 0: nothing yet. */
  readonly generation: number;
  /** Undefined where there is none, or it was asked for with settings of before. */
  readonly accessToken: string | undefined;
  readonly renewAtMs: number | undefined;
  readonly refreshToken: string | undefined;
  /** When the issuer last refused for good, in ms; undefined: not since it last gave something. */
  readonly refusedAtMs: number | undefined;
}

/** Whose turn it is to ask the issuer, and after which generation. */
export interface RenewalTurn {
  readonly connectionId: string;
  readonly generation: number;
  /** Unlike that of all others. */
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
  refusedAtMs: undefined,
};

/** @param connection with the version that its settings have now */
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
    refusedAtMs: row.refusedAt?.getTime(),
  };
}

/**
 * Takes the turn for so long, by PostgreSQL's clock, if nobody has it and nothing was given since that generation. A turn whose
 * holder is gone passes on when its time is over, and it is noted that the issuer's answer may be lost.
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
 * Gives the turn back; nobody takes it for `restMs`, so that a failing issuer is not asked by one after the other at once.
 *
 * @param isAnswerLost the issuer may have given tokens that did not arrive
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
 * Stores the tokens of the issuer, if none were stored since the turn began; false otherwise. The present holder of the turn
 * does not count: a holder that was slow still has the only refresh token that works.
 *
 * @param connectionVersion of the settings that the tokens were asked for with
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
  const sealed: Sealed = { accessToken, ...(refreshToken !== undefined && { refreshToken }) };
  const stored = await trx
    .updateTable("connectionTokens")
    .set({
      generation,
      sealedTokens: keyring.seal(JSON.stringify(sealed), tokensPlace(turn.connectionId, generation)),
      renewAt: renewAtMs === undefined ? null : new Date(renewAtMs),
      connectionVersion,
      leaseHolder: null,
      leaseExpiresAt: null,
      refusedAt: null,
      ...ANSWERED,
    })
    .where("connectionId", "=", turn.connectionId)
    .where("generation", "=", turn.generation)
    .returning("generation")
    .executeTakeFirst();
  if (stored === undefined) return false;
  await writeConnectionState(trx, turn.connectionId, { state: "ok" }, nowMs);
  return true;
}

const ANSWERED = { asking: false, answerLostAt: null } as const;

/** A refusal for good: of the grant, or of the client and what it asks for. */
export interface TokenRejection {
  readonly state: "needsReauth" | "error";
  /** The issuer's. */
  readonly code: string;
}

/**
 * Notes that the issuer refuses for good, if the turn is still the holder's and nothing was given meanwhile. Answers whether it
 * refuses a grant of which an answer was lost before: the refresh token that would work was in it.
 */
export async function noteRefusal(
  trx: Trx,
  turn: RenewalTurn,
  { state, code }: TokenRejection,
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
    : { code, message: REFUSED[state] };
  await writeConnectionState(trx, turn.connectionId, { state, error }, nowMs);
  return isTokenLost;
}

const tokenLost = (code: string, at: Date | null): string =>
  `The issuer refuses the refresh token (${code}). An answer of the issuer, which may have held the next one, was lost before it was stored, noticed at ${at?.toISOString()}: a worker ended, or the connection broke. Authorize the connection again, or give it a new refresh token.`;

const REFUSED = {
  needsReauth:
    "The grant is refused, or was never given: authorize the connection, or give it a new refresh token.",
  error: "The issuer refuses the client or its settings: change them.",
} as const;

/**
 * Takes away what was given: it belongs to a grant, or to a client, that a person replaces. Who asks the issuer at this moment is
 * refused when it comes back. Answers the generation that stands from now on.
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

/** Lets the issuer be asked again at once: what it refused may have been mended. */
export async function forgetRefusal(trx: Trx, connectionId: string): Promise<void> {
  await trx
    .updateTable("connectionTokens")
    .set({ refusedAt: null })
    .where("connectionId", "=", connectionId)
    .execute();
}

function open(keyring: Keyring, row: Row<"connectionTokens">): Sealed {
  if (row.sealedTokens === null) return {};
  return JSON.parse(keyring.open(row.sealedTokens, tokensPlace(row.connectionId, row.generation)));
}

/** Where the tokens are sealed. */
export const tokensPlace = (connectionId: string, generation: number): string =>
  `connections/${connectionId}/tokens/${generation}`;
