import { sql } from "kysely";
import { createSealingKey, openSecret, type SealingKey, sealSecret } from "../../lib/secrets/secret.ts";
import { FIRST_START_PLACE } from "../bootstrap.ts";
import { recordChange } from "../changes.ts";
import { addressPlace } from "../channels/address-columns.ts";
import { settingsPlace } from "../channels/channel-secrets.ts";
import { verifierPlace } from "../connections/connection-authorizations.ts";
import { tokensPlace } from "../connections/connection-tokens.ts";
import { connectionSecretsPlace } from "../connections/connections.ts";
import type { Queryable, Trx } from "../database.ts";
import { answerPlace } from "../idempotency.ts";
import { handlerSecretPlace } from "../subscriptions/handlers.ts";
import {
  ACCESS_TOKEN_KEY_ROW,
  CHANNEL_ID_KEY_ROW,
  CHECK_ROW,
  CHECK_TEXT,
  opensCheck,
  WrongMasterKeyError,
} from "./keyring.ts";

/** A column of sealed texts, and what each is sealed for. */
interface SealedColumn<Row> {
  readonly table: string;
  readonly column: string;
  /** The columns by which the place is told, as they are called on this side. */
  readonly select: readonly (keyof Row & string)[];
  readonly placeOf: (row: Row) => string;
}

/** Erases what a column's rows look like. */
const sealedColumn = <Row extends object>(column: SealedColumn<Row>): SealedColumn<never> =>
  column as unknown as SealedColumn<never>;

/** All that is sealed beside the keys of the cluster. A new one also wants the trigger `require_master_key`. */
export const SEALED_COLUMNS: readonly SealedColumn<never>[] = [
  sealedColumn<{ readonly number: number }>({
    table: "channels",
    column: "sealed_settings",
    select: ["number"],
    placeOf: ({ number }) => settingsPlace(Number(number)),
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
  sealedColumn<object>({
    table: "untold_first_start",
    column: "sealed_facts",
    select: [],
    placeOf: () => FIRST_START_PLACE,
  }),
];

const BATCH = 500;

/** The result of a rotation. `already`: the database has the new key, by a rotation of before. */
export type Rotation = { readonly kind: "rotated"; readonly resealed: number } | { readonly kind: "already" };

export interface RotationOptions {
  /** Without a limit to the time of a statement. */
  readonly db: Queryable;
  /** 32 bytes each. */
  readonly from: Buffer;
  readonly to: Buffer;
  readonly signal: AbortSignal;
}

/**
 * Seals all that is sealed under another master key: all of it or, however it ends, nothing, for it is one transaction, and the
 * check value is written last. Gateways read on meanwhile; what they write of secrets waits, and afterwards is refused from those
 * that seal under the key of before. They are told by the change feed.
 *
 * @throws WrongMasterKeyError when the database has neither key; Error when something does not open: it names what.
 */
export function rotateMasterKey({ db, from, to, signal }: RotationOptions): Promise<Rotation> {
  const keys = { from: createSealingKey(from), to: createSealingKey(to) };
  return db.transaction().execute(async (trx) => {
    const cluster = await trx.selectFrom("cluster").selectAll().forUpdate().executeTakeFirst();
    if (cluster && opensCheck(keys.to, cluster.masterKeyCheck)) return { kind: "already" };
    if (!cluster || !opensCheck(keys.from, cluster.masterKeyCheck)) {
      throw new WrongMasterKeyError(
        `The master key (${keys.from.id}) is not the one of the database${cluster ? ` (${cluster.masterKeyId})` : ""}.`,
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

/** A row by where it lies: it stays there until it is written, which nobody else does. */
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
