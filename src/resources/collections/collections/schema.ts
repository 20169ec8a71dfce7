import { z } from "zod";
import type { CollectionRow } from "../../../data/collection-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

export const collectionInput = z.strictObject({
  name: nameInput.meta({ example: "Customers" }),
  description: z.string().max(4_096).nullable().default(null),
});

export const collectionPatch = patchOf(collectionInput);

/** The collection as the API answers it. */
export const collectionSchema = z
  .object({
    id: id("col"),
    name: z.string(),
    description: z.string().nullable(),
    organizationId: id("org"),
    ...times,
  })
  .meta({ id: "Collection", description: "Records that have the same fields." });
export type Collection = Shown<z.output<typeof collectionSchema>>;

export function renderCollection(row: CollectionRow): Collection {
  const { id, name, description, organizationId } = row;
  return { id, name, description, organizationId, ...timesOf(row) };
}
