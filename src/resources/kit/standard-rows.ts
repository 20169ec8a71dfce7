import type { Context } from "hono";
import type { Kysely, SelectQueryBuilder } from "kysely";
import type { z } from "zod";
import type { Queryable, Trx } from "../../data/database.ts";
import type { ApiEnv, Caller } from "../../http/context.ts";
import type { Listed, Page } from "../../http/page.ts";
import { ApiError, notFound } from "../../http/problem.ts";
import { requireMatch, showVersion } from "../../http/version.ts";
import { createId, isId } from "../../lib/ids.ts";
import type { Field, Fields } from "./field.ts";
import { listPage } from "./list-page.ts";
import { applyPatch } from "./merge.ts";
import { ownedRows, type RowDeps } from "./owned-rows.ts";
import { requireRow } from "./references.ts";
import { refuseInUse, refuseTaken } from "./refusals.ts";
import type { Kit, Place, ResourceSpec, Selection } from "./resource-spec.ts";

/** A selection as a query of any table. */
type Rows = SelectQueryBuilder<
  { rows: { id: string; organizationId: string; createdAt: Date } },
  "rows",
  Values
>;
type Values = Readonly<Record<string, unknown>>;

/** What the five operations do with rows, apart from HTTP; `spec` says what is particular. */
export function standardRows<
  F extends Fields,
  X extends z.ZodRawShape,
  D extends RowDeps,
  Q extends z.ZodRawShape,
>(given: ResourceSpec<F, X, D, Q> & { readonly words: string }) {
  // In here one resource is like another: what its types tell is known to its declaration alone.
  const spec = given as unknown as ResourceSpec<Fields, z.ZodRawShape, D, z.ZodRawShape>;
  const { words } = given;
  const { table, shape, audit, access, owner, datedBy, within, references = {}, taken, inUse } = spec;
  const { version, changeable } = spec;
  const { prefix } = shape;
  const fields = Object.entries(shape.fields);
  const rows = ownedRows(table, {
    prefix,
    words,
    ...(access && { access }),
    ...(owner && { owner }),
    ...(datedBy && { datedBy }),
    ...(audit && { entity: audit }),
  });
  const parents = within && ownedRows(within.parent.table, within.parent);

  const query = (selection: Selection) => selection.selectAll() as Rows;
  const all = (db: Queryable, { organizationId }: Caller, place: Place): Selection => {
    const of = (db as unknown as Kysely<Record<"rows", Values>>).selectFrom(table as "rows");
    return within
      ? of.where(within.param, "=", place[within.param])
      : of.where(owner ?? "organizationId", "=", organizationId);
  };
  const renderAll = async (db: Queryable, caller: Caller, found: readonly Values[]): Promise<object[]> => {
    if (found.length === 0) return [];
    const inside = await spec.inside?.(db, found as never, caller);
    return found.map((row) => shape.render(row as never, inside?.(row as never)) as object);
  };
  const answer = async (db: Queryable, caller: Caller, row: object): Promise<object> => {
    if (spec.answer) return spec.answer(db, caller, (row as { readonly id: string }).id);
    const [entity] = await renderAll(db, caller, [row as Values]);
    return entity ?? {};
  };

  /** The same with its version in the headers. */
  const show = (db: Queryable, caller: Caller, row: object, c: Context<ApiEnv>): Promise<object> => {
    if (version) showVersion(c, version(row as never));
    return answer(db, caller, row);
  };

  /** @throws ApiError 404 for a row of another parent */
  const inPlace = <R extends object>(row: R, place: Place): R => {
    if (within && (row as Values)[within.param] !== place[within.param]) throw notFound(words);
    return row;
  };

  const seen = (visible: Selection, id: string) =>
    query(visible).where("id", "=", isId(prefix, id) ? id : "");

  /** @throws ApiError 404 */
  const find = async (db: Queryable, caller: Caller, id: string): Promise<object> => {
    if (!spec.visible) return rows.get(db, caller, id);
    const row = await seen(spec.visible(db, caller), id).executeTakeFirst();
    if (!row) throw notFound(words);
    return row;
  };

  /** @throws ApiError 404, 403 */
  const lock = async (trx: Trx, caller: Caller, place: Place, id: string) => {
    if (changeable) {
      const row = await seen(changeable(trx, caller), id).forUpdate().executeTakeFirst();
      if (!row) throw notFound(words);
      return inPlace(row as never, place);
    }
    if (!spec.visible) return inPlace(await rows.lock(trx, caller, id), place);
    const { organizationId } = caller;
    const all = seen(spec.visible(trx, caller), id);
    const own = spec.foreign === undefined ? all.where("organizationId", "=", organizationId) : all;
    const row = await own.forUpdate().executeTakeFirst();
    if (!row) throw notFound(words);
    if (row.organizationId !== organizationId) throw new ApiError("permission_denied", spec.foreign ?? "");
    return inPlace(row as never, place);
  };

  /** The parent is seen by the caller. @throws ApiError 404 */
  const requireParent = async (db: Queryable, caller: Caller, place: Place): Promise<void> => {
    if (!within || !parents) return;
    const id = place[within.param] ?? "";
    if (!within.visible) return void (await parents.get(db, caller, id));
    const seen = await query(within.visible(db, caller)).where("id", "=", id).executeTakeFirst();
    if (!seen) throw notFound(within.parent.words);
  };

  const lockParent = async (trx: Trx, caller: Caller, place: Place, isNew: boolean): Promise<void> => {
    if (!within || !parents) return;
    const { lock = "create" } = within;
    if (!isNew && lock.startsWith("create")) return;
    const lockParentRow = lock.endsWith("Shared") ? parents.lockShared : parents.lock;
    await lockParentRow(trx, caller, place[within.param] ?? "");
  };

  /** What the write names anew is there. @throws ApiError 404 */
  const requireReferences = async (trx: Trx, caller: Caller, values: Values, before: object = {}) => {
    for (const [name, reference] of Object.entries(references)) {
      const id = (values[name] ?? null) as string | null;
      if (reference && id !== (before as Values)[name]) await requireRow(trx, caller, reference, id);
    }
  };

  const columnsOf = (values: Values): Values =>
    Object.fromEntries(
      fields
        .filter(([name, { stored }]) => stored && values[name] !== undefined)
        .map(([name, { toColumn }]) => [name, toColumn(values[name])]),
    );
  const valuesOf = (row: object): Values =>
    Object.fromEntries(
      fields
        .filter(([, one]) => one.stored)
        .map(([name, one]) => [name, one.fromColumn((row as Values)[name])]),
    );

  return (deps: D) => {
    const { db, clock } = deps;

    const insert = async (trx: Trx, caller: Caller, place: Place, body: object): Promise<object> => {
      await lockParent(trx, caller, place, true);
      const nowMs = clock();
      const id = createId(prefix, nowMs);
      const sent: Values = { ...body, ...place };
      const given = ([name, { written, orElse }]: NamedField) => {
        const { [name]: value = orElse?.({ id, caller }) } = sent;
        return value === undefined && written !== "never" ? null : value;
      };
      const values = { ...sent, ...Object.fromEntries(fields.map((one) => [one[0], given(one)])) };
      await requireReferences(trx, caller, values);
      const write = { trx, caller, deps, nowMs, id, before: undefined, values: values as never };
      const content = { ...values, ...(await spec.prepare?.(write)) };
      const row = await rows.insert(trx, caller, columnsOf(content) as never, nowMs, id);
      await spec.afterWrite?.({ ...write, values: content as never, row: row as never });
      return row;
    };

    const create = async (
      caller: Caller,
      place: Place,
      body: object,
      c: Context<ApiEnv>,
    ): Promise<object> => {
      await spec.checkBody?.(body, deps);
      const created = db
        .transaction()
        .execute(async (trx) => show(trx, caller, await insert(trx, caller, place, body), c));
      return taken ? refuseTaken(taken.message, created) : created;
    };

    const change: Kit<typeof shape>["change"] = (caller, id, to, action) =>
      db.transaction().execute(async (trx) => {
        const before = await lock(trx, caller, {}, id);
        const nowMs = clock();
        const content = columnsOf(await to({ trx, before, nowMs }));
        const row = await rows.update(trx, caller, before, content as never, nowMs, action);
        return answer(trx, caller, row) as never;
      });

    const update = async (
      caller: Caller,
      place: Place,
      id: string,
      patch: object,
      c: Context<ApiEnv>,
    ): Promise<object> => {
      await spec.checkBody?.(patch, deps);
      const updated = db.transaction().execute(async (trx) => {
        await lockParent(trx, caller, place, false);
        await spec.lockFirst?.(trx, caller, patch);
        const before = await lock(trx, caller, place, id);
        const were = { ...valuesOf(before), ...(await spec.readAside?.(trx, before as never)) };
        const changeable = fields.filter(([, { written }]) => written === "always");
        const of = (values: Values) => Object.fromEntries(changeable.map(([name]) => [name, values[name]]));
        const sent: Values = applyPatch(shape.content, of(were), patch);
        const after = Object.fromEntries(changeable.map(([name]) => [name, sent[name] ?? null]));
        const values = { ...were, ...after };
        await requireReferences(trx, caller, values, before);
        if (version) requireMatch(c, version(before as never));
        const nowMs = clock();
        const write = { trx, caller, deps, nowMs, id, before: before as never, values: values as never };
        const prepared = await spec.prepare?.(write);
        const row = await rows.update(
          trx,
          caller,
          before,
          columnsOf({ ...after, ...prepared }) as never,
          nowMs,
        );
        await spec.afterWrite?.({ ...write, values: { ...values, ...prepared } as never, row: row as never });
        return show(trx, caller, row, c);
      });
      return taken ? refuseTaken(taken.message, updated) : updated;
    };

    const remove = async (caller: Caller, place: Place, id: string, c: Context<ApiEnv>): Promise<void> => {
      const deleted = db.transaction().execute(async (trx) => {
        await lockParent(trx, caller, place, false);
        const row = await lock(trx, caller, place, id);
        if (version) requireMatch(c, version(row as never));
        const nowMs = clock();
        const remove = () => rows.remove(trx, caller, row, nowMs);
        await (spec.remove?.({ trx, caller, deps, nowMs, row: row as never, remove }) ?? remove());
      });
      await (inUse ? refuseInUse(inUse.message, deleted) : deleted);
    };

    const get = async (caller: Caller, place: Place, id: string, c: Context<ApiEnv>): Promise<object> =>
      spec.answer?.(db, caller, id) ?? show(db, caller, inPlace(await find(db, caller, id), place), c);

    const list = async (
      caller: Caller,
      place: Place,
      page: Page,
      filters: Values,
    ): Promise<Listed<object>> => {
      await requireParent(db, caller, place);
      await spec.filters?.check?.(db, caller, filters, place);
      const selection = spec.filters?.find(db, caller, filters, place) ?? all(db, caller, place);
      const { items, total } = await listPage(query(selection), page);
      return { items: await renderAll(db, caller, items), total };
    };

    return { answer, create, update, remove, get, list, insert, change };
  };
}

type NamedField = readonly [name: string, field: Field];
