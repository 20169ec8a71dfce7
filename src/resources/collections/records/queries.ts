import { sql } from "kysely";
import type { CollectionFieldRow, CollectionRecordRow } from "../../../data/collection-tables.ts";
import type { Trx } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { invalidParameters, notFound } from "../../../http/problem.ts";
import { createId } from "../../../lib/ids.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import {
  fieldsOf,
  noteUniqueValues,
  readValues,
  type StoredValues,
  showValues,
} from "../collection-values.ts";
import { type CollectionRecord, type RecordInput, recordInput, renderRecord } from "./schema.ts";

const TAKEN = "Another record has the same value of a unique field.";

/** A record's place: its id says nothing without the collection. */
export interface RecordPlace {
  readonly collectionId: string;
  readonly id: string;
}

const collections = ownedRows("collections", { prefix: "col", entity: "collection" });
const rows = ownedRows("collectionRecords", { prefix: "rec", words: "record" });

/** @throws ApiError 404 without such a collection */
export async function listRecords(
  { db }: RowDeps,
  caller: Caller,
  collectionId: string,
  page: Page,
): Promise<Listed<CollectionRecord>> {
  await collections.get(db, caller, collectionId);
  const fields = await fieldsOf(db, collectionId);
  const all = db.selectFrom("collectionRecords").selectAll().where("collectionId", "=", collectionId);
  return mapPage(await listPage(all, page), (row) => renderRecord(row, fields));
}

export async function getRecord(
  { db }: RowDeps,
  caller: Caller,
  place: RecordPlace,
): Promise<CollectionRecord> {
  const row = within(place, await rows.get(db, caller, place.id));
  return renderRecord(row, await fieldsOf(db, place.collectionId));
}

/** @throws ApiError 404; 400 that names each value which does not fit; 409 where another record has a unique value */
export async function createRecord(
  { db, clock }: RowDeps,
  caller: Caller,
  collectionId: string,
  { values: given }: RecordInput,
): Promise<CollectionRecord> {
  const created = db.transaction().execute(async (trx) => {
    // Its fields stay as they are until the record is there.
    await collections.lockShared(trx, caller, collectionId);
    const fields = await fieldsOf(trx, collectionId);
    const values = requireValues(fields, given);
    // Not by this gateway's clock, which is not the others'.
    const now = sql<Date>`clock_timestamp()`;
    const { organizationId } = caller;
    const row = await trx
      .insertInto("collectionRecords")
      .values({
        ...{ id: createId("rec", clock()), organizationId, collectionId },
        ...{ values: JSON.stringify(values), createdAt: now, updatedAt: now },
      })
      .returningAll()
      .executeTakeFirstOrThrow();
    await noteUnique(trx, fields, row);
    return renderRecord(row, fields);
  });
  return refuseTaken(TAKEN, created);
}

/** @throws ApiError 404; 400 that names each value which does not fit; 409 where another record has a unique value */
export async function updateRecord(
  { db, clock }: RowDeps,
  caller: Caller,
  place: RecordPlace,
  patch: object,
): Promise<CollectionRecord> {
  const updated = db.transaction().execute(async (trx) => {
    await collections.lockShared(trx, caller, place.collectionId);
    const before = within(place, await rows.lock(trx, caller, place.id));
    const fields = await fieldsOf(trx, place.collectionId);
    const { values: given } = applyPatch(recordInput, { values: showValues(fields, before.values) }, patch);
    const values = requireValues(fields, given);
    await trx.deleteFrom("collectionUniqueValues").where("recordId", "=", before.id).execute();
    const row = await rows.update(trx, caller, before, { values: JSON.stringify(values) }, clock());
    await noteUnique(trx, fields, row);
    return renderRecord(row, fields);
  });
  return refuseTaken(TAKEN, updated);
}

/** @throws ApiError 404 */
export async function deleteRecord(
  { db, clock }: RowDeps,
  caller: Caller,
  place: RecordPlace,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, within(place, await rows.lock(trx, caller, place.id)), clock());
  });
}

/** @throws ApiError 400 */
function requireValues(
  fields: readonly CollectionFieldRow[],
  given: Readonly<Record<string, unknown>>,
): StoredValues {
  const read = readValues(fields, given);
  if ("findings" in read) throw invalidParameters(read.findings);
  return read.values;
}

const noteUnique = (
  trx: Trx,
  fields: readonly CollectionFieldRow[],
  { id }: CollectionRecordRow,
): Promise<void> => {
  const unique = fields.filter(({ isUnique }) => isUnique).map((field) => field.id);
  return noteUniqueValues(trx, unique, sql`record.id = ${id}`);
};

/** @throws ApiError 404 for a record of another collection */
function within({ collectionId }: RecordPlace, row: CollectionRecordRow): CollectionRecordRow {
  if (row.collectionId !== collectionId) throw notFound("record");
  return row;
}
