import { z } from "zod";
import type { CollectionFieldRow, CollectionRecordRow } from "../../../data/collection-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { mapInput } from "../../kit/free-form.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";
import { showValues } from "../collection-values.ts";

/** What is written of a record; its values are checked by the fields of its collection. */
export const recordInput = z.strictObject({
  values: mapInput.meta({
    description: "By the names of the collection's fields. Null is no value.",
    shown: { type: "object", additionalProperties: {} },
  }),
});
export type RecordInput = z.output<typeof recordInput>;

export const recordPatch = patchOf(recordInput);

/** The record as the API answers it. */
export const recordSchema = z
  .object({
    id: id("rec"),
    collectionId: id("col"),
    values: z
      .record(z.string(), z.unknown())
      .meta({ description: "Of every field of the collection, by its name; null: no value." }),
    ...times,
  })
  .meta({ id: "CollectionRecord", description: "One record of a collection." });
export type CollectionRecord = Shown<z.output<typeof recordSchema>>;

export function renderRecord(
  row: CollectionRecordRow,
  fields: readonly CollectionFieldRow[],
): CollectionRecord {
  const { id, collectionId, values } = row;
  return { id, collectionId, values: showValues(fields, values), ...timesOf(row) };
}
