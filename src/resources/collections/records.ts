import { sql } from "kysely";
import { z } from "zod";
import { invalidParameters } from "../../http/errors.ts";
import { id } from "../../http/fields.ts";
import { json, readOnly } from "../kit/field.ts";
import { mapInput } from "../kit/free-form.ts";
import { COLLECTIONS } from "../kit/references.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { fieldsOf, noteUniqueValues, readValues, showValues } from "./collection-values.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    collectionRecords: TableOf<typeof fields>;
  }
}

const byName = mapInput.meta({
  description: "The values by field name. `null` counts as no value.",
  shown: { type: "object", additionalProperties: {} },
});

const fields = {
  collectionId: readOnly(id("col")),
  /** Values of the record, keyed by field name in the API and by field id in the table. Null values are not stored. */
  values: json(byName, z.record(z.string(), z.unknown())),
};

const record = shape({
  prefix: "rec",
  fields,
  inside: {
    values: z
      .record(z.string(), z.unknown())
      .meta({ description: "The values of all fields, by name. `null` if the record has no value." }),
  },
  meta: { id: "CollectionRecord", description: "One record of a collection." },
});

const description =
  "Values are checked against the fields of the collection. An unknown field, an invalid value or a missing required value is rejected with 400, and the error names `values.<field>`.";

export const collectionRecords = standardResource({
  path: "/collections/:collectionId/records",
  tag: "Collections",
  name: "record",
  table: "collectionRecords",
  shape: record,
  // Lock the collection, so that its fields cannot change before the record is written.
  within: { param: "collectionId", parent: COLLECTIONS, lock: "alwaysShared" },
  datedBy: "database",
  taken: {
    when: "another record has the same value in a unique field",
    message: "Another record has the same value in a unique field.",
  },
  readAside: async (trx, { collectionId, values }) => ({
    values: showValues(await fieldsOf(trx, collectionId), values),
  }),
  async inside(db, [first]) {
    const fields = await fieldsOf(db, first?.collectionId ?? "");
    return ({ values }) => ({ values: showValues(fields, values) });
  },
  async prepare({ trx, values: { collectionId, values } }) {
    const read = readValues(await fieldsOf(trx, collectionId), values);
    if ("findings" in read) throw invalidParameters(read.findings);
    return { values: read.values };
  },
  async afterWrite({ trx, before, row: { id, collectionId } }) {
    if (before) await trx.deleteFrom("collectionUniqueValues").where("recordId", "=", id).execute();
    const unique = (await fieldsOf(trx, collectionId)).filter(({ isUnique }) => isUnique);
    await noteUniqueValues(
      trx,
      unique.map((field) => field.id),
      sql`record.id = ${id}`,
    );
  },
  notes: {
    create: { description },
    update: { description: `The new values replace all values. ${description}` },
  },
});
