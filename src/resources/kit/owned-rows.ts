import { type Insertable, type Kysely, type Selectable, sql, type Updateable } from "kysely";
import { recordAudit } from "../../data/accounts/audit.ts";
import type { AuditAction, AuditEntity } from "../../data/accounts/audit-entry.ts";
import { recordChange } from "../../data/changes.ts";
import type { Timestamps } from "../../data/columns.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Tables } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import type { Listed, Page } from "../../http/page.ts";
import { notFound } from "../../http/problem.ts";
import { changedFields } from "../../lib/changed-fields.ts";
import type { Clock } from "../../lib/clock.ts";
import { createId, isId } from "../../lib/ids.ts";
import { listPage } from "./list-page.ts";

/** What a resource needs that only keeps rows. */
export interface RowDeps {
  readonly db: Queryable;
  readonly clock: Clock;
}

/** All of these tables have it. */
interface Owned extends Timestamps {
  id: string;
}

/** Tables whose rows belong to one organization each, or are one. */
export type OwnedTable = {
  [T in keyof Tables]: Tables[T] extends Owned ? T : never;
}[keyof Tables];

type Row<T extends OwnedTable> = Selectable<Tables[T]>;
type Content<V> = Omit<V, keyof Owned | "organizationId">;
type Scope = Pick<Caller, "organizationId">;

/**
 * What all resources do alike with their rows, never past the caller's organization. Each write of what the audit keeps notes
 * who made it, and tells the change feed where it changes who may do what.
 */
export interface OwnedRows<T extends OwnedTable> {
  /** @throws ApiError 404 */
  readonly get: (db: Queryable, scope: Scope, id: string) => Promise<Row<T>>;
  /** Nobody changes or deletes it until the transaction ends; others may lock it so too. @throws ApiError 404 */
  readonly lockShared: (trx: Trx, scope: Scope, id: string) => Promise<Row<T>>;
  /** Nobody else locks, changes or deletes it until the transaction ends. @throws ApiError 404 */
  readonly lock: (trx: Trx, scope: Scope, id: string) => Promise<Row<T>>;
  readonly list: (db: Queryable, scope: Scope, page: Page) => Promise<Listed<Row<T>>>;
  readonly insert: (
    trx: Trx,
    caller: Caller,
    content: Content<Insertable<Tables[T]>>,
    nowMs: number,
    /** Default: a new one. */
    id?: string,
  ) => Promise<Row<T>>;
  readonly update: (
    trx: Trx,
    caller: Caller,
    before: Row<T>,
    content: Partial<Content<Updateable<Tables[T]>>>,
    nowMs: number,
    /** Default: `update`. */
    action?: AuditAction,
  ) => Promise<Row<T>>;
  readonly remove: (trx: Trx, caller: Caller, row: Row<T>, nowMs: number) => Promise<void>;
}

/** How the rows of a table are named. */
export type RowNames = {
  /** How their ids begin. */
  readonly prefix: string;
  /** That they decide who may do what. */
  readonly access?: true;
  /** The column that names their organization; default: `organizationId`. */
  readonly owner?: "id";
  /** New ones are dated by the database: those of several gateways stand in one order. */
  readonly datedBy?: "database";
} & (
  | {
      /** What the audit calls them. */
      readonly entity: AuditEntity;
      /** As one is called in a sentence; default: the entity. */
      readonly words?: string;
    }
  | {
      /** The audit keeps nothing of them. */
      readonly entity?: never;
      readonly words: string;
    }
);

export function ownedRows<T extends OwnedTable>(table: T, names: RowNames): OwnedRows<T> {
  const { prefix, entity, owner = "organizationId" } = names;
  const words = names.entity === undefined ? names.words : (names.words ?? names.entity);
  // One table stands for all: only the columns that each of them has are named here.
  const of = (db: Queryable) => db as unknown as Kysely<Record<"rows", Owned & { organizationId: string }>>;
  const rows = table as "rows";
  const shown = (row: unknown): Row<T> => row as Row<T>;
  const idOf = (row: Row<T>): string => (row as { readonly id: string }).id;

  const select = (db: Queryable, { organizationId }: Scope, id: string) =>
    of(db)
      .selectFrom(rows)
      .selectAll()
      .where("id", "=", isId(prefix, id) ? id : "")
      .where(owner, "=", organizationId);

  const orNotFound = (row: unknown): Row<T> => {
    if (row === undefined) throw notFound(words);
    return shown(row);
  };

  const note = async (
    trx: Trx,
    caller: Caller,
    action: AuditAction,
    id: string,
    nowMs: number,
    fields: readonly string[] = [],
  ): Promise<void> => {
    if (entity !== undefined) await recordAudit(trx, caller, { action, entity, id, fields }, nowMs);
    if (names.access) await recordChange(trx, { kind: "access", key: caller.organizationId });
  };

  return {
    get: async (db, scope, id) => orNotFound(await select(db, scope, id).executeTakeFirst()),
    lockShared: async (trx, scope, id) =>
      orNotFound(await select(trx, scope, id).forShare().executeTakeFirst()),
    lock: async (trx, scope, id) => orNotFound(await select(trx, scope, id).forUpdate().executeTakeFirst()),
    async list(db, { organizationId }, page) {
      const all = of(db).selectFrom(rows).where(owner, "=", organizationId);
      const { items, total } = await listPage(all.selectAll(), page);
      return { items: items.map(shown), total };
    },
    async insert(trx, caller, content, nowMs, id = createId(prefix, nowMs)) {
      const { organizationId } = caller;
      const now = names.datedBy === "database" ? sql<Date>`clock_timestamp()` : new Date(nowMs);
      const times = { createdAt: now, updatedAt: now };
      const insert = of(trx)
        .insertInto(rows)
        .values({ ...content, id, organizationId, ...times });
      const row = await insert.returningAll().executeTakeFirstOrThrow();
      await note(trx, caller, "create", id, nowMs);
      return shown(row);
    },
    async update(trx, caller, before, content, nowMs, action = "update") {
      const update = of(trx)
        .updateTable(rows)
        .set({ ...content, updatedAt: new Date(nowMs) })
        .where("id", "=", idOf(before));
      const row = await update.returningAll().executeTakeFirstOrThrow();
      // Every write changes these.
      const [were, are] = [before, row].map((one) => ({ ...one, updatedAt: undefined, version: undefined }));
      await note(trx, caller, action, row.id, nowMs, changedFields({ ...were }, { ...are }));
      return shown(row);
    },
    async remove(trx, caller, row, nowMs) {
      await of(trx).deleteFrom(rows).where("id", "=", idOf(row)).execute();
      await note(trx, caller, "delete", idOf(row), nowMs);
    },
  };
}
