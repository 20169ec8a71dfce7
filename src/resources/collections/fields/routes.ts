import { sql } from "kysely";
import type { Trx } from "../../../data/database.ts";
import { conflict } from "../../../http/problem.ts";
import { COLLECTIONS } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { noteUniqueValues } from "../collection-values.ts";
import { type FieldRow, field } from "./schema.ts";

/** Records are answered with all of them. */
const MAX_FIELDS = 100;
const taken = "the collection has a field of that name already";

/** The fields of a collection: each record may have a value of each. */
export const collectionFields = standardResource({
  path: "/collections/:collectionId/fields",
  tag: "Collections",
  name: "field",
  table: "collectionFields",
  shape: field,
  audit: "collectionField",
  // A write of a record locks the collection too: none comes or changes meanwhile.
  within: { param: "collectionId", parent: COLLECTIONS, lock: "always" },
  taken: {
    when: taken,
    message:
      "The collection has a field of that name already, or records have the same value of a unique field.",
  },
  readAside: async (_, { isUnique }) => ({ unique: isUnique }),
  inside:
    async () =>
    ({ isUnique }) => ({ unique: isUnique }),
  async prepare({ trx, before, values }) {
    await (before ? requireFit(trx, before, values) : requireRoom(trx, values));
    return { isUnique: values.unique };
  },
  async afterWrite({ trx, before, row: { id, collectionId, isUnique } }) {
    if (before?.isUnique && !isUnique)
      await trx.deleteFrom("collectionUniqueValues").where("fieldId", "=", id).execute();
    if (before && !before.isUnique && isUnique)
      await noteUniqueValues(trx, [id], sql`record.collection_id = ${collectionId}`);
  },
  async remove({ trx, row, remove }) {
    await sql`
      UPDATE collection_records AS record
      SET values = (
        SELECT coalesce(json_object_agg(one.key, one.value), '{}')
        FROM json_each(record.values) AS one WHERE one.key <> ${row.id}
      )
      WHERE ${havingValue(row)}`.execute(trx);
    await remove();
  },
  notes: {
    create: {
      description: "Records that are there have no value of it; a collection has 100 fields at most.",
      conflict: `${taken}, or a hundred fields, or it has records and the field is required`,
    },
    update: {
      description: "By another name, it has the values that it had.",
      conflict: `${taken}, or there are records that have values of it and it changes its kind, that have chosen an option which goes, that lack a value and it becomes required, or that have the same value and it becomes unique`,
    },
    delete: { description: "All records lose their value of it." },
  },
});

type FieldValues = Pick<FieldRow, "collectionId" | "kind" | "options" | "required">;

/** @throws ApiError 409 for a field too many, or a required one where there are records */
async function requireRoom(trx: Trx, { collectionId, required }: FieldValues): Promise<void> {
  const { count } = await trx
    .selectFrom("collectionFields")
    .select((eb) => eb.fn.countAll<number>().as("count"))
    .where("collectionId", "=", collectionId)
    .executeTakeFirstOrThrow();
  if (count >= MAX_FIELDS) throw conflict(`A collection has ${MAX_FIELDS} fields at most.`);
  if (required && (await exists(trx, sql`record.collection_id = ${collectionId}`)))
    throw conflict("There are records, which would lack a value: add it as optional, and require it later.");
}

/** @throws ApiError 409 where records have, or lack, values that the changed field would not allow */
async function requireFit(trx: Trx, before: FieldRow, after: FieldValues): Promise<void> {
  if (after.kind !== before.kind && (await exists(trx, havingValue(before))))
    throw conflict("Records have values of the field: it keeps its kind.");
  if (after.required && !before.required && (await exists(trx, lackingValue(before))))
    throw conflict("Records lack a value of the field: it cannot be required.");
  const removed = before.options.filter((option) => !after.options.includes(option));
  const chosen = sql`${havingValue(before)} AND record.values ->> ${before.id}::text = ANY (${removed}::text[])`;
  if (removed.length > 0 && (await exists(trx, chosen)))
    throw conflict("Records have chosen an option that would be removed.");
}

const havingValue = ({ id, collectionId }: FieldRow) =>
  sql`record.collection_id = ${collectionId} AND record.values -> ${id}::text IS NOT NULL`;
const lackingValue = ({ id, collectionId }: FieldRow) =>
  sql`record.collection_id = ${collectionId} AND record.values -> ${id}::text IS NULL`;

async function exists(trx: Trx, where: ReturnType<typeof havingValue>): Promise<boolean> {
  const { rows: found } = await sql`
    SELECT 1 FROM collection_records AS record WHERE ${where} LIMIT 1`.execute(trx);
  return found.length > 0;
}
