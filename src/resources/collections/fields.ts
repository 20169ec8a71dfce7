import { sql } from "kysely";
import { z } from "zod";
import type { Trx } from "../../data/database.ts";
import { conflict } from "../../http/errors.ts";
import { id } from "../../http/fields.ts";
import { hidden, readOnly, unstored } from "../kit/field.ts";
import { textUpTo } from "../kit/fields.ts";
import { countRows } from "../kit/list-page.ts";
import { COLLECTIONS } from "../kit/references.ts";
import { type RowOf, shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { FIELD_KINDS, noteUniqueValues } from "./collection-values.ts";

const MAX_OPTIONS = 200;

declare module "../../data/tables.ts" {
  interface Tables {
    collectionFields: TableOf<typeof fields>;
  }
}

const unique = z.boolean().meta({
  description:
    "Whether each value may occur only once. Not allowed for the kinds `boolean`, `choice` and `json`.",
});

const fields = {
  collectionId: readOnly(id("col")),
  name: z.string().min(1).max(64).meta({
    description: "The key of the value in records. Unique within the collection.",
    example: "email",
  }),
  description: textUpTo(4_096),
  kind: z.enum(FIELD_KINDS).meta({
    description:
      "The kind of the values. `date` is an RFC 3339 full-date. `dateTime` is an RFC 3339 time, returned in UTC. `url` is an http or https URL. `choice` is one of the options. `json` is any value except null.",
  }),
  options: z.array(z.string().min(1).max(255)).max(MAX_OPTIONS).default([]).meta({
    description: "The possible values. Required for the kind `choice`, and not allowed for other kinds.",
    example: [],
  }),
  required: z.boolean().default(false).meta({ description: "Whether every record must have a value." }),
  unique: unstored(unique.default(false)),
  /** Column that stores the API field `unique`. */
  isUnique: hidden(z.boolean()),
};

type FieldRow = RowOf<typeof fields>;

const field = shape({
  prefix: "fld",
  fields,
  inside: { unique },
  check({ kind, options, unique }, context) {
    const issue = (path: (string | number)[], message: string) =>
      context.addIssue({ code: "custom", path, message });
    if (kind === "choice" && options.length === 0) issue(["options"], "are required for the kind choice");
    if (kind !== "choice" && options.length > 0) issue(["options"], "are only allowed for the kind choice");
    for (const [index, option] of options.entries()) {
      if (options.indexOf(option) < index) issue(["options", index], "is listed twice");
    }
    if (unique && (kind === "boolean" || kind === "choice" || kind === "json"))
      issue(["unique"], `is not allowed for the kind ${kind}`);
  },
  meta: { id: "CollectionField", description: "A field of the records of a collection." },
});

/** Maximum number of fields per collection. The limit exists because the response for a record contains all fields. */
const MAX_FIELDS = 100;
const taken = "the collection already has a field with this name";

export const collectionFields = standardResource({
  path: "/collections/:collectionId/fields",
  tag: "Collections",
  name: "field",
  table: "collectionFields",
  shape: field,
  audit: "collectionField",
  // Always lock the collection. Writes of records lock it too, so no record can change while a field changes.
  within: { param: "collectionId", parent: COLLECTIONS, lock: "always" },
  taken: {
    when: taken,
    message:
      "The collection already has a field with this name, or records have the same value in a unique field.",
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
      description:
        "Existing records have no value for the new field. A collection can have at most 100 fields.",
      conflict: `${taken}; or it already has 100 fields; or the field is required and the collection has records`,
    },
    update: {
      description: "A renamed field keeps its values.",
      conflict: `${taken}; or the new kind, options, \`required\` or \`unique\` do not fit the values of existing records`,
    },
    delete: { description: "Deletes the field and its values in all records." },
  },
});

type FieldValues = Pick<FieldRow, "collectionId" | "kind" | "options" | "required">;

/**
 * Checks whether a field can be added.
 * @throws ApiError 409 if the collection has `MAX_FIELDS` fields, or if existing records lack a required value
 */
async function requireRoom(trx: Trx, { collectionId, required }: FieldValues): Promise<void> {
  const present = trx.selectFrom("collectionFields").where("collectionId", "=", collectionId);
  if ((await countRows(present)) >= MAX_FIELDS)
    throw conflict(`A collection can have at most ${MAX_FIELDS} fields.`);
  if (required && (await exists(trx, sql`record.collection_id = ${collectionId}`)))
    throw conflict(
      "Existing records would lack a value. Add the field as optional, and make it required later.",
    );
}

/**
 * Checks that existing values are valid for the changed field.
 * @throws ApiError 409 if a value is invalid, or a required value is missing
 */
async function requireFit(trx: Trx, before: FieldRow, after: FieldValues): Promise<void> {
  if (after.kind !== before.kind && (await exists(trx, havingValue(before))))
    throw conflict("The kind cannot change, because records have values of the field.");
  if (after.required && !before.required && (await exists(trx, lackingValue(before))))
    throw conflict("The field cannot become required, because records lack a value.");
  const removed = before.options.filter((option) => !after.options.includes(option));
  const chosen = sql`${havingValue(before)} AND record.values ->> ${before.id}::text = ANY (${removed}::text[])`;
  if (removed.length > 0 && (await exists(trx, chosen)))
    throw conflict("The option cannot be removed, because records use it.");
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
