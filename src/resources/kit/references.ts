import type { Kysely, SelectQueryBuilder } from "kysely";
import type { Timestamps } from "../../data/columns.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row, Tables } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/problem.ts";
import { isId } from "../../lib/ids.ts";
import { requireAccounts } from "./account-scope.ts";

/** Tables whose rows belong to one organization each, or are one. */
export type OwnedTable = {
  [T in keyof Tables]: Tables[T] extends Timestamps & { id: string } ? T : never;
}[keyof Tables];

/** Rows that others name by their ids. */
export interface Reference<T extends OwnedTable = OwnedTable> {
  readonly table: T;
  /** How their ids begin. */
  readonly prefix: string;
  /** As one is called in a sentence. */
  readonly words: string;
}

export const APPS = { table: "apps", prefix: "app", words: "app" } as const;
export const BLUEPRINTS = { table: "blueprints", prefix: "bp", words: "blueprint" } as const;
export const CONNECTIONS = { table: "connections", prefix: "con", words: "connection" } as const;
export const ARTIFACTS = { table: "artifacts", prefix: "art", words: "artifact" } as const;
export const STORES: Reference = { table: "stores", prefix: "store", words: "store" };
export const COLLECTIONS = { table: "collections", prefix: "col", words: "collection" } as const;
export const STATES = { table: "states", prefix: "state", words: "state" } as const;
/** Those that the organization sees, its own or not. */
export const ACCOUNTS: Reference = { table: "accounts", prefix: "acc", words: "account" };
export const SPACES: Reference = { table: "spaces", prefix: "spc", words: "space" };

/** A query of any of these tables. */
export type AnyRow = Readonly<Record<string, unknown>>;
export type AnyRows = SelectQueryBuilder<Record<"rows", AnyRow>, "rows", AnyRow>;

/** The table by the columns that all of them have, or that its caller knows it to have. */
export const anyTable = (db: Queryable) => db as unknown as Kysely<Record<"rows", AnyRow>>;

/** The rows whose column has that value. */
export const rowsWhere = (db: Queryable, table: OwnedTable, column: string, value: unknown): AnyRows =>
  anyTable(db)
    .selectFrom(table as "rows")
    .selectAll()
    .where(column, "=", value);

/** The organization's rows by creation, or those of them whose column has one of the values. */
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

/** Until the transaction ends nobody deletes the row (`keyShare`), or changes it (`share`), or locks it either (`update`). */
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

/** The row of that id that the organization has. @throws ApiError 404 */
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

/** The caller's organization has that row, and nobody deletes it until the transaction ends; null names none. @throws ApiError 404 */
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
