import { sql } from "kysely";
import { createSealingKey, openSecret, type SealingKey, sealSecret } from "../../lib/secrets/secret.ts";
import { FIRST_START_PLACE } from "../bootstrap.ts";
import { recordChange } from "../changes.ts";
import { addressPlace } from "../channels/address-columns.ts";
import { secretsPlace } from "../channels/channel-secrets.ts";
import { verifierPlace } from "../connections/connection-authorizations.ts";
import { tokensPlace } from "../connections/connection-tokens.ts";
import { connectionSecretsPlace } from "../connections/connections.ts";
import type { Queryable, Trx } from "../database.ts";
import { answerPlace } from "../idempotency.ts";
import { contentsPlace } from "../registrations/registration-contents.ts";
import { handlerSecretPlace } from "../subscriptions/handlers.ts";
import {
  ACCESS_TOKEN_KEY_ROW,
  CHANNEL_ID_KEY_ROW,
  CHECK_ROW,
  CHECK_TEXT,
  opensCheck,
  WrongMasterKeyError,
} from "./keyring.ts";

/** A database column of encrypted texts. `placeOf` returns the encryption context (AAD) of a row. */
interface SealedColumn<Row> {
  readonly table: string;
  readonly column: string;
  /** Columns that `placeOf` reads to build the encryption context, in camelCase. */
  readonly select: readonly (keyof Row & string)[];
  readonly placeOf: (row: Row) => string;
}

/** Hides the row type, so that columns of different tables fit in one list. */
const sealedColumn = <Row extends object>(column: SealedColumn<Row>): SealedColumn<never> =>
  column as unknown as SealedColumn<never>;

/**
 * All columns with secrets to encrypt again, except the keys in `cluster`. The table of each column needs the trigger
 * `require_master_key`.
 */
export const SEALED_COLUMNS: readonly SealedColumn<never>[] = [
  sealedColumn<{ readonly number: number }>({
    table: "channels",
    column: "sealed_settings",
    select: ["number"],
    placeOf: ({ number }) => secretsPlace(Number(number)),
  }),
  sealedColumn<{ readonly number: number }>({
    table: "channels",
    column: "sealed_address",
    select: ["number"],
    placeOf: ({ number }) => addressPlace(Number(number)),
  }),
  sealedColumn<Parameters<typeof answerPlace>[0]>({
    table: "idempotency_keys",
    column: "sealed_answer",
    select: ["organizationId", "accountId", "key"],
    placeOf: answerPlace,
  }),
  sealedColumn<{ readonly id: string }>({
    table: "connections",
    column: "sealed_secrets",
    select: ["id"],
    placeOf: ({ id }) => connectionSecretsPlace(id),
  }),
  sealedColumn<{ readonly connectionId: string; readonly generation: number }>({
    table: "connection_tokens",
    column: "sealed_tokens",
    select: ["connectionId", "generation"],
    placeOf: ({ connectionId, generation }) => tokensPlace(connectionId, Number(generation)),
  }),
  sealedColumn<{ readonly connectionId: string; readonly stateHash: Buffer }>({
    table: "connection_authorizations",
    column: "sealed_verifier",
    select: ["connectionId", "stateHash"],
    placeOf: ({ connectionId, stateHash }) => verifierPlace(connectionId, stateHash),
  }),
  sealedColumn<{ readonly id: string }>({
    table: "subscriptions",
    column: "sealed_handler_secret",
    select: ["id"],
    placeOf: ({ id }) => handlerSecretPlace(id),
  }),
  sealedColumn<{ readonly id: string }>({
    table: "registrations",
    column: "sealed_contents",
    select: ["id"],
    placeOf: ({ id }) => contentsPlace(id),
  }),
  sealedColumn<object>({
    table: "untold_first_start",
    column: "sealed_facts",
    select: [],
    placeOf: () => FIRST_START_PLACE,
  }),
];

const BATCH = 500;

/**
 * Result of a change of the master key. `already` means that the database uses the new key already. `resealed` counts the secrets
 * that were encrypted again.
 */
export type Rotation = { readonly kind: "rotated"; readonly resealed: number } | { readonly kind: "already" };

export interface RotationOptions {
  /** A database connection without a statement timeout, because a rotation may take long. */
  readonly db: Queryable;
  /** Current master key. Both keys have 32 bytes. */
  readonly from: Buffer;
  readonly to: Buffer;
  readonly signal: AbortSignal;
}

/**
 * Encrypts all secrets again under a new master key, in one transaction. It changes either all secrets or none.
 *
 * During the rotation, gateways can read secrets, but their writes of secrets wait. After it, writes that were sealed under the
 * old key are rejected. The change feed notifies gateways of the new key.
 *
 * @throws WrongMasterKeyError if the database uses neither key
 * @throws Error that names the secret if one cannot be decrypted
 */
export function rotateMasterKey({ db, from, to, signal }: RotationOptions): Promise<Rotation> {
  const keys = { from: createSealingKey(from), to: createSealingKey(to) };
  return db.transaction().execute(async (trx) => {
    const cluster = await trx.selectFrom("cluster").selectAll().forUpdate().executeTakeFirst();
    if (cluster && opensCheck(keys.to, cluster.masterKeyCheck)) return { kind: "already" };
    if (!cluster || !opensCheck(keys.from, cluster.masterKeyCheck)) {
      throw new WrongMasterKeyError(
        `The master key (${keys.from.id}) does not match the database${cluster ? `, which uses the key ${cluster.masterKeyId}` : ""}.`,
      );
    }
    const tables = sql.join(SEALED_COLUMNS.map(({ table }) => sql.table(table)));
    await sql`LOCK TABLE ${tables} IN SHARE ROW EXCLUSIVE MODE`.execute(trx);
    await trx.updateTable("cluster").set({ masterKeyId: keys.to.id }).execute();
    let resealed = 0;
    for (const column of SEALED_COLUMNS) resealed += await resealColumn(trx, column, keys, signal);
    const { sealedChannelIdKey, sealedAccessTokenKey } = cluster;
    await trx
      .updateTable("cluster")
      .set({
        sealedChannelIdKey: reseal(keys, sealedChannelIdKey, CHANNEL_ID_KEY_ROW),
        ...(sealedAccessTokenKey !== null && {
          sealedAccessTokenKey: reseal(keys, sealedAccessTokenKey, ACCESS_TOKEN_KEY_ROW),
        }),
        masterKeyCheck: sealSecret(keys.to, CHECK_TEXT, CHECK_ROW),
      })
      .execute();
    await recordChange(trx, { kind: "masterKey", key: keys.to.id });
    signal.throwIfAborted();
    return { kind: "rotated", resealed };
  });
}

interface Keys {
  readonly from: SealingKey;
  readonly to: SealingKey;
}

/** A row to encrypt again. Its ctid, `place`, stays valid, because a table lock keeps other writers out. */
type SealedRow = Readonly<Record<string, unknown>> & { readonly place: string; readonly sealed: string };

async function resealColumn(
  trx: Trx,
  { table, column, select, placeOf }: SealedColumn<never>,
  keys: Keys,
  signal: AbortSignal,
): Promise<number> {
  const [name, sealed] = [sql.table(table), sql.ref(column)];
  for (let resealed = 0; ; ) {
    signal.throwIfAborted();
    const { rows } = await sql<SealedRow>`
      SELECT ${sql.join([sql`ctid::text AS place`, sql`${sealed} AS sealed`, ...select.map((one) => sql.ref(one))])}
      FROM ${name}
      WHERE ${sealed} IS NOT NULL AND split_part(${sealed}, '.', 2) <> ${keys.to.id}
      LIMIT ${BATCH}`.execute(trx);
    if (rows.length === 0) return resealed;
    const places = rows.map(({ place }) => place);
    const texts = rows.map((row) => reseal(keys, row.sealed, placeOf(row as never)));
    await sql`
      UPDATE ${name} AS t SET ${sealed} = v.sealed
      FROM unnest(${places}::text[]::tid[], ${texts}::text[]) AS v(place, sealed)
      WHERE t.ctid = v.place`.execute(trx);
    resealed += rows.length;
  }
}

const reseal = ({ from, to }: Keys, sealed: string, place: string): string =>
  sealSecret(to, openSecret(from, sealed, place), place);
