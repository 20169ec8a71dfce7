import type { Kysely } from "kysely";
import type { Trx } from "../../data/database.ts";
import type { Caller } from "../../http/context.ts";
import { notFound } from "../../http/problem.ts";
import { isId } from "../../lib/ids.ts";
import { requireAccounts } from "./account-scope.ts";
import type { OwnedTable } from "./owned-rows.ts";

/** Rows that others name by their ids. */
export interface Reference {
  readonly table: OwnedTable;
  /** How their ids begin. */
  readonly prefix: string;
  /** As one is called in a sentence. */
  readonly words: string;
}

export const BLUEPRINTS: Reference = { table: "blueprints", prefix: "bp", words: "blueprint" };
export const ARTIFACTS = { table: "artifacts", prefix: "art", words: "artifact" } as const;
export const STORES: Reference = { table: "stores", prefix: "store", words: "store" };
export const COLLECTIONS = { table: "collections", prefix: "col", words: "collection" } as const;
export const STATES = { table: "states", prefix: "state", words: "state" } as const;
/** Those that the organization sees, its own or not. */
export const ACCOUNTS: Reference = { table: "accounts", prefix: "acc", words: "account" };
export const SPACES: Reference = { table: "spaces", prefix: "spc", words: "space" };

/**
 * The caller's organization has that row, and nobody deletes it until the transaction ends; null names none.
 *
 * @throws ApiError 404
 */
export async function requireRow(
  trx: Trx,
  caller: Caller,
  { table, prefix, words }: Reference,
  id: string | null,
): Promise<void> {
  if (id === null) return;
  if (table === "accounts") return void (await requireAccounts(trx, caller, [id]));
  // One table stands for all: only the columns that each of them has are named here.
  const of = trx as unknown as Kysely<Record<"rows", { id: string; organizationId: string }>>;
  const found = isId(prefix, id)
    ? await of
        .selectFrom(table as "rows")
        .select("id")
        .where("id", "=", id)
        .where("organizationId", "=", caller.organizationId)
        .forKeyShare()
        .executeTakeFirst()
    : undefined;
  if (!found) throw notFound(words);
}
