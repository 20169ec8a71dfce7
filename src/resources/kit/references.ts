import type { Kysely, SelectQueryBuilder } from "kysely";
import type { Timestamps } from "../../data/columns.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row, Tables } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/errors.ts";
import { isId } from "../../lib/ids.ts";
import { requireAccounts } from "./account-scope.ts";

/** Tables whose rows belong to an organization. Includes the table of the organizations themselves. */
export type OwnedTable = {
  [T in keyof Tables]: Tables[T] extends Timestamps & { id: string } ? T : never;
}[keyof Tables];

export interface Reference<T extends OwnedTable = OwnedTable> {
  readonly table: T;
  readonly prefix: string;
  readonly words: string;
}

export const APPS = { table: "apps", prefix: "app", words: "app" } as const;
export const BLUEPRINTS = { table: "blueprints", prefix: "bp", words: "blueprint" } as const;
export const CONNECTIONS = { table: "connections", prefix: "con", words: "connection" } as const;
export const ARTIFACTS = { table: "artifacts", prefix: "art", words: "artifact" } as const;
export const STORES: Reference = { table: "stores", prefix: "store", words: "store" };
export const COLLECTIONS = { table: "collections", prefix: "col", words: "collection" } as const;
export const STATES = { table: "states", prefix: "state", words: "state" } as const;
/** `requireRow` also accepts accounts of another organization if the caller's organization can see them. */
export const ACCOUNTS: Reference = { table: "accounts", prefix: "acc", words: "account" };
export const SPACES: Reference = { table: "spaces", prefix: "spc", words: "space" };

/** A row of a table whose columns TypeScript does not know. */
export type AnyRow = Readonly<Record<string, unknown>>;
export type AnyRows = SelectQueryBuilder<Record<"rows", AnyRow>, "rows", AnyRow>;

/** Bypasses the column types of a table. The caller must know that the columns exist. */
export const anyTable = (db: Queryable) => db as unknown as Kysely<Record<"rows", AnyRow>>;

export const rowsWhere = (db: Queryable, table: OwnedTable, column: string, value: unknown): AnyRows =>
  anyTable(db)
    .selectFrom(table as "rows")
    .selectAll()
    .where(column, "=", value);

/** Returns the organization's rows in order of creation. `column` and `values` restrict the result to rows with one of these values. */
export async function listRows<T extends OwnedTable>(
  db: Queryable,
  { organizationId }: Pick<Caller, "organizationId">,
  table: T,
  column?: string,
  values: readonly string[] = [],
): Promise<Row<T>[]> {
  const own = rowsWhere(db, table, "organizationId", organizationId);
  const found = column === undefined ? own : own.where(column, "in", values.concat(""));
  return (await found.orderBy("createdAt").orderBy("id").execute()) as object[] as Row<T>[];
}

/** Row lock until the transaction ends. `keyShare` blocks deletion, `share` also changes, and `update` also other locks. */
export type Lock = "keyShare" | "share" | "update";

export function locked(rows: AnyRows, lock: Lock | undefined): AnyRows {
  switch (lock) {
    case undefined:
      return rows;
    case "keyShare":
      return rows.forKeyShare();
    case "share":
      return rows.forShare();
    case "update":
      return rows.forUpdate();
    default:
      return lock satisfies never;
  }
}

/** Reads a row by id. @throws ApiError 404 if the organization has no such row */
export async function getRow<T extends OwnedTable>(
  db: Queryable,
  scope: Pick<Caller, "organizationId">,
  { table, prefix, words }: Reference<T>,
  id: string,
  lock?: Lock,
): Promise<Row<T>> {
  const own = rowsWhere(db, table, "organizationId", scope.organizationId);
  const rows = own.where("id", "=", isId(prefix, id) ? id : "");
  const row = await locked(rows, lock).executeTakeFirst();
  if (!row) throw notFound(words);
  return row as Row<T>;
}

/**
 * Checks that the row exists and prevents its deletion until the transaction ends. Accepts a `null` id.
 * @throws ApiError 404 if the caller's organization has no such row
 */
export async function requireRow(
  trx: Trx,
  caller: Caller,
  reference: Reference,
  id: string | null,
): Promise<void> {
  if (id === null) return;
  if (reference.table === "accounts") await requireAccounts(trx, caller, [id]);
  else await getRow(trx, caller, reference, id, "keyShare");
}
