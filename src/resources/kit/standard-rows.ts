import type { Context } from "hono";
import { sql } from "kysely";
import type { z } from "zod";
import { recordAudit } from "../../data/accounts/audit.ts";
import type { AuditAction } from "../../data/accounts/audit-entry.ts";
import { recordChange } from "../../data/changes.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { ApiEnv, Caller } from "../../http/context.ts";
import { ApiError, notFound } from "../../http/errors.ts";
import type { Listed, Page } from "../../http/page.ts";
import { requireMatch, showVersion } from "../../http/version.ts";
import { createId, isId } from "../../lib/ids.ts";
import { changedFields } from "../../lib/json/changed-fields.ts";
import { conflictIfInUse, conflictIfTaken } from "./conflicts.ts";
import type { Deps } from "./deps.ts";
import type { Field, Fields } from "./field.ts";
import { listPage } from "./list-page.ts";
import { applyPatch } from "./merge.ts";
import { type AnyRow, type AnyRows, anyTable, getRow, requireRow, rowsWhere } from "./references.ts";
import type { Kit, ParentIds, ResourceSpec, Selection } from "./resource-spec.ts";

/** Implements the five standard operations on the rows of a resource. By default, a caller can only access rows of its own organization. */
export function standardRows<F extends Fields, X extends z.ZodRawShape, Q extends z.ZodRawShape>(
  given: ResourceSpec<F, X, Q> & { readonly words: string },
) {
  // Use general types here. Only the code that declares a resource needs the specific types.
  const spec = given as unknown as ResourceSpec<Fields, z.ZodRawShape, z.ZodRawShape>;
  const { words } = given;
  const { table, shape, audit, feed, owner = "organizationId", visible, foreign, within, version } = spec;
  const { prefix } = shape;
  const rows = table as "rows";
  const counted = { table, words, inside: within && { table: within.parent.table, column: within.param } };
  const fields = Object.entries(shape.fields);
  const changeableFields = fields.filter(([, { written }]) => written === "always");

  type Find = (db: Queryable, caller: Caller) => AnyRows;
  const selected =
    (find: (db: Queryable, caller: Caller) => Selection): Find =>
    (db, caller) =>
      find(db, caller).selectAll() as AnyRows;
  const own: Find = (db, caller) => rowsWhere(db, table, owner, caller.organizationId);
  const seen = visible ? selected(visible) : own;
  const ownSeen: Find = (db, caller) => seen(db, caller).where("organizationId", "=", caller.organizationId);
  const changeable = spec.changeable
    ? selected(spec.changeable)
    : visible && foreign === undefined
      ? ownSeen
      : seen;

  /** Returns the row with this id. @throws ApiError 404 if there is none, or if its parent is not the parent in the path */
  const only = async (found: AnyRows, place: ParentIds, id: string): Promise<AnyRow> => {
    const row = await found.where("id", "=", isId(prefix, id) ? id : "").executeTakeFirst();
    if (!row || (within && row[within.param] !== place[within.param])) throw notFound(words);
    return row;
  };

  /** Locks a row that will be changed. @throws ApiError 404 if not found; 403 for another organization's visible row if `foreign` is set */
  const lock = async (trx: Trx, caller: Caller, place: ParentIds, id: string): Promise<AnyRow> => {
    const row = await only(changeable(trx, caller).forUpdate(), place, id);
    if (foreign !== undefined && row.organizationId !== caller.organizationId)
      throw new ApiError("permission_denied", foreign);
    return row;
  };

  /** Checks that the caller can see the parent in the path. @throws ApiError 404 if not */
  const requireParent = async (db: Queryable, caller: Caller, place: ParentIds): Promise<void> => {
    if (!within) return;
    const { parent, param } = within;
    const id = place[param] ?? "";
    if (!within.visible) return void (await getRow(db, caller, parent, id));
    const found = selected(within.visible)(db, caller).where("id", "=", id);
    if (!(await found.executeTakeFirst())) throw notFound(parent.words);
  };

  const lockParent = async (trx: Trx, caller: Caller, place: ParentIds, isNew: boolean): Promise<void> => {
    if (!within) return;
    const { parent, param, lock = "create" } = within;
    if (!isNew && lock.startsWith("create")) return;
    await getRow(trx, caller, parent, place[param] ?? "", lock.endsWith("Shared") ? "share" : "update");
  };

  /** Checks that rows exist to which `values` newly refers. @throws ApiError 404 if one does not exist */
  const requireReferences = async (trx: Trx, caller: Caller, values: AnyRow, before: AnyRow = {}) => {
    for (const [name, reference] of Object.entries(spec.references ?? {})) {
      const id = (values[name] ?? null) as string | null;
      if (reference && id !== before[name]) await requireRow(trx, caller, reference, id);
    }
  };

  const columnsOf = (values: AnyRow): AnyRow =>
    Object.fromEntries(
      fields
        .filter(([name, { stored }]) => stored && values[name] !== undefined)
        .map(([name, { toColumn }]) => [name, toColumn(values[name])]),
    );
  const valuesOf = (row: AnyRow): AnyRow =>
    Object.fromEntries(
      fields.filter(([, { stored }]) => stored).map(([name, one]) => [name, one.fromColumn(row[name])]),
    );

  const renderAll = async (db: Queryable, caller: Caller, found: readonly AnyRow[]): Promise<object[]> => {
    if (found.length === 0) return [];
    const inside = await spec.inside?.(db, found as never, caller);
    return found.map((row) => shape.render(row as never, inside?.(row as never)) as object);
  };
  const answer = async (db: Queryable, caller: Caller, row: AnyRow): Promise<object> => {
    if (spec.answer) return spec.answer(db, caller, row.id as string);
    const [entity] = await renderAll(db, caller, [row]);
    return entity ?? {};
  };
  const show = (db: Queryable, caller: Caller, row: AnyRow, c: Context<ApiEnv>): Promise<object> => {
    if (version) showVersion(c, version(row as never));
    return answer(db, caller, row);
  };

  /** Writes an audit entry and notifies the workers of the change. */
  const note = async (
    trx: Trx,
    caller: Caller,
    action: AuditAction,
    id: string,
    nowMs: number,
    changed: readonly string[] = [],
  ): Promise<void> => {
    if (audit) await recordAudit(trx, caller, { action, entity: audit, id, fields: changed }, nowMs);
    if (feed) await recordChange(trx, { kind: feed, key: feed === "access" ? caller.organizationId : id });
  };

  const updateRow = async (
    trx: Trx,
    caller: Caller,
    before: AnyRow,
    values: AnyRow,
    nowMs: number,
    action: AuditAction = "update",
  ): Promise<AnyRow> => {
    const row = await anyTable(trx)
      .updateTable(rows)
      .set({
        ...columnsOf(values),
        ...(version && { version: Number(before.version) + 1 }),
        updatedAt: new Date(nowMs),
      })
      .where("id", "=", before.id)
      .returningAll()
      .executeTakeFirstOrThrow();
    // Omit `updatedAt` and `version` from the audit entry, because every write changes them.
    const [were, are] = [before, row].map((one) => ({ ...one, updatedAt: undefined, version: undefined }));
    await note(trx, caller, action, row.id as string, nowMs, changedFields({ ...were }, { ...are }));
    return row;
  };

  return (deps: Deps) => {
    const { db, clock } = deps;

    const insert = async (trx: Trx, caller: Caller, place: ParentIds, body: object): Promise<AnyRow> => {
      await lockParent(trx, caller, place, true);
      if (owner !== "id") await deps.requireRoom(trx, caller, counted);
      const nowMs = clock();
      const id = createId(prefix, nowMs);
      const sent: AnyRow = { ...body, ...place };
      const given = ([name, { written, orElse }]: readonly [string, Field]) => {
        const { [name]: value = orElse?.({ id, caller }) } = sent;
        return value === undefined && written !== "never" ? null : value;
      };
      const values = { ...sent, ...Object.fromEntries(fields.map((one) => [one[0], given(one)])) };
      await requireReferences(trx, caller, values);
      const write = { trx, caller, deps, nowMs, id, before: undefined, values: values as never };
      const content: AnyRow = { ...values, ...(await spec.prepare?.(write)) };
      const now = spec.datedBy === "database" ? sql<Date>`clock_timestamp()` : new Date(nowMs);
      const { organizationId } = caller;
      const row = await anyTable(trx)
        .insertInto(rows)
        .values({ ...columnsOf(content), id, organizationId, createdAt: now, updatedAt: now })
        .returningAll()
        .executeTakeFirstOrThrow();
      await note(trx, caller, "create", id, nowMs);
      await spec.afterWrite?.({ ...write, values: content as never, row: row as never });
      return row;
    };

    const change: Kit<typeof shape>["change"] = (caller, id, to, action) =>
      db.transaction().execute(async (trx) => {
        const before = await lock(trx, caller, {}, id);
        const nowMs = clock();
        const content = await to({ trx, before: before as never, nowMs });
        return answer(trx, caller, await updateRow(trx, caller, before, content, nowMs, action)) as never;
      });

    const inTransaction = <T>(act: (trx: Trx) => Promise<T>): Promise<T> => {
      const done = db.transaction().execute(act);
      return spec.taken ? conflictIfTaken(spec.taken.message, done) : done;
    };

    return {
      answer,
      insert,
      change,
      async create(caller: Caller, place: ParentIds, body: object, c: Context<ApiEnv>): Promise<object> {
        const checked = { ...body, ...(await spec.readBody?.(body, deps, caller)) };
        return inTransaction(async (trx) => show(trx, caller, await insert(trx, caller, place, checked), c));
      },
      async update(
        caller: Caller,
        place: ParentIds,
        id: string,
        patch: object,
        c: Context<ApiEnv>,
      ): Promise<object> {
        const checked = { ...patch, ...(await spec.readBody?.(patch, deps, caller)) };
        return inTransaction(async (trx) => {
          await lockParent(trx, caller, place, false);
          await spec.lockFirst?.(trx, caller, checked);
          const before = await lock(trx, caller, place, id);
          const were = { ...valuesOf(before), ...(await spec.readAside?.(trx, before as never)) };
          const pick = (of: AnyRow) => changeableFields.map(([name]) => [name, of[name]] as const);
          const sent: AnyRow = applyPatch(shape.content, Object.fromEntries(pick(were)), checked);
          const after = Object.fromEntries(pick(sent).map(([name, value]) => [name, value ?? null]));
          const values = { ...were, ...after };
          await requireReferences(trx, caller, values, before);
          if (version) requireMatch(c, version(before as never));
          const nowMs = clock();
          const write = { trx, caller, deps, nowMs, id, before: before as never, values: values as never };
          const prepared = await spec.prepare?.(write);
          const row = await updateRow(trx, caller, before, { ...after, ...prepared }, nowMs);
          const written = { ...values, ...prepared } as never;
          await spec.afterWrite?.({ ...write, values: written, row: row as never });
          return show(trx, caller, row, c);
        });
      },
      async remove(caller: Caller, place: ParentIds, id: string, c: Context<ApiEnv>): Promise<void> {
        const deleted = db.transaction().execute(async (trx) => {
          await lockParent(trx, caller, place, false);
          const row = await lock(trx, caller, place, id);
          if (version) requireMatch(c, version(row as never));
          const nowMs = clock();
          const remove = async () => {
            await anyTable(trx).deleteFrom(rows).where("id", "=", id).execute();
            await note(trx, caller, "delete", id, nowMs);
          };
          await (spec.remove?.({ trx, caller, deps, nowMs, row: row as never, remove }) ?? remove());
        });
        await (spec.inUse ? conflictIfInUse(spec.inUse.message, deleted) : deleted);
      },
      get: async (caller: Caller, place: ParentIds, id: string, c: Context<ApiEnv>): Promise<object> =>
        spec.answer?.(db, caller, id) ?? show(db, caller, await only(seen(db, caller), place, id), c),
      async list(caller: Caller, place: ParentIds, page: Page, filters: AnyRow): Promise<Listed<object>> {
        await requireParent(db, caller, place);
        await spec.filters?.check?.(db, caller, filters, place);
        const found = spec.filters?.find(db, caller, filters, place)?.selectAll() as AnyRows | undefined;
        const all = within ? rowsWhere(db, table, within.param, place[within.param]) : own(db, caller);
        const { items, total } = await listPage(found ?? all, page);
        return { items: await renderAll(db, caller, items), total };
      },
    };
  };
}
