import { sql } from "kysely";
import type { CollectionFieldRow } from "../../../data/collection-tables.ts";
import type { Trx } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import { noteUniqueValues } from "../collection-values.ts";
import { contentOf, type Field, type FieldInput, fieldInput, renderField } from "./schema.ts";

/** Records are answered with all of them. */
const MAX_FIELDS = 100;
const TAKEN =
  "The collection has a field of that name already, or records have the same value of a unique field.";

/** A field's place: its id says nothing without the collection. */
export interface FieldPlace {
  readonly collectionId: string;
  readonly id: string;
}

const collections = ownedRows("collections", { prefix: "col", entity: "collection" });
const rows = ownedRows("collectionFields", { prefix: "fld", entity: "collectionField", words: "field" });

/** @throws ApiError 404 without such a collection */
export async function listFields(
  { db }: RowDeps,
  caller: Caller,
  collectionId: string,
  page: Page,
): Promise<Listed<Field>> {
  await collections.get(db, caller, collectionId);
  const all = db.selectFrom("collectionFields").selectAll().where("collectionId", "=", collectionId);
  return mapPage(await listPage(all, page), renderField);
}

export const getField = async ({ db }: RowDeps, caller: Caller, place: FieldPlace): Promise<Field> =>
  renderField(within(place, await rows.get(db, caller, place.id)));

/** @throws ApiError 404; 409 for a name that the collection has, a field too many, or a required one where there are records */
export async function createField(
  { db, clock }: RowDeps,
  caller: Caller,
  collectionId: string,
  { unique: isUnique, ...input }: FieldInput,
): Promise<Field> {
  const created = db.transaction().execute(async (trx) => {
    // Whoever writes records holds the collection: no record comes or changes meanwhile.
    await collections.lock(trx, caller, collectionId);
    const { count } = await trx
      .selectFrom("collectionFields")
      .select((eb) => eb.fn.countAll<number>().as("count"))
      .where("collectionId", "=", collectionId)
      .executeTakeFirstOrThrow();
    if (count >= MAX_FIELDS) throw conflict(`A collection has ${MAX_FIELDS} fields at most.`);
    if (input.required && (await hasRecords(trx, collectionId)))
      throw conflict(
        "There are records, which would lack a value: add it as optional, and require it later.",
      );
    return rows.insert(trx, caller, { ...input, collectionId, isUnique }, clock());
  });
  return renderField(await refuseTaken(TAKEN, created));
}

/** @throws ApiError 400; 404; 409 for a name that the collection has, or where records have values that would not fit */
export async function updateField(
  { db, clock }: RowDeps,
  caller: Caller,
  place: FieldPlace,
  patch: object,
): Promise<Field> {
  const updated = db.transaction().execute(async (trx) => {
    await collections.lock(trx, caller, place.collectionId);
    const before = within(place, await rows.lock(trx, caller, place.id));
    const { unique: isUnique, ...input } = applyPatch(fieldInput, contentOf(before), patch);
    await requireFit(trx, before, input);
    if (before.isUnique && !isUnique)
      await trx.deleteFrom("collectionUniqueValues").where("fieldId", "=", before.id).execute();
    if (!before.isUnique && isUnique)
      await noteUniqueValues(trx, [before.id], sql`record.collection_id = ${before.collectionId}`);
    return rows.update(trx, caller, before, { ...input, isUnique }, clock());
  });
  return renderField(await refuseTaken(TAKEN, updated));
}

/** Its values go with it. @throws ApiError 404 */
export async function deleteField({ db, clock }: RowDeps, caller: Caller, place: FieldPlace): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await collections.lock(trx, caller, place.collectionId);
    const row = within(place, await rows.lock(trx, caller, place.id));
    await sql`
      UPDATE collection_records AS record
      SET values = (
        SELECT coalesce(json_object_agg(one.key, one.value), '{}')
        FROM json_each(record.values) AS one WHERE one.key <> ${row.id}
      )
      WHERE ${havingValue(row)}`.execute(trx);
    await rows.remove(trx, caller, row, clock());
  });
}

/** @throws ApiError 409 where records have, or lack, values that the changed field would not allow */
async function requireFit(
  trx: Trx,
  before: CollectionFieldRow,
  after: Pick<FieldInput, "kind" | "options" | "required">,
): Promise<void> {
  if (after.kind !== before.kind && (await exists(trx, havingValue(before))))
    throw conflict("Records have values of the field: it keeps its kind.");
  if (after.required && !before.required && (await exists(trx, lackingValue(before))))
    throw conflict("Records lack a value of the field: it cannot be required.");
  const removed = before.options.filter((option) => !after.options.includes(option));
  const chosen = sql`${havingValue(before)} AND record.values ->> ${before.id}::text = ANY (${removed}::text[])`;
  if (removed.length > 0 && (await exists(trx, chosen)))
    throw conflict("Records have chosen an option that would be removed.");
}

const havingValue = ({ id, collectionId }: CollectionFieldRow) =>
  sql`record.collection_id = ${collectionId} AND record.values -> ${id}::text IS NOT NULL`;
const lackingValue = ({ id, collectionId }: CollectionFieldRow) =>
  sql`record.collection_id = ${collectionId} AND record.values -> ${id}::text IS NULL`;

async function exists(trx: Trx, where: ReturnType<typeof havingValue>): Promise<boolean> {
  const { rows: found } = await sql`
    SELECT 1 FROM collection_records AS record WHERE ${where} LIMIT 1`.execute(trx);
  return found.length > 0;
}

async function hasRecords(trx: Trx, collectionId: string): Promise<boolean> {
  return exists(trx, sql`record.collection_id = ${collectionId}`);
}

/** @throws ApiError 404 for a field of another collection */
function within({ collectionId }: FieldPlace, row: CollectionFieldRow): CollectionFieldRow {
  if (row.collectionId !== collectionId) throw notFound("field");
  return row;
}
