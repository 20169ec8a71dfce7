import { z } from "zod";
import type { StoreCategoryRow } from "../../../data/store-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { nameInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

/** What may be changed of a category. */
export const categoryContent = z.strictObject({
  name: nameInput.meta({ description: "Unique in its store.", example: "Integrations" }),
  description: z.string().max(4_096).nullable().default(null),
});

/** The same when one is made. */
export const categoryInput = categoryContent.extend({
  storeId: z.string().meta({
    description: "A store of the caller's organization.",
    example: "store_01jc9x2k4v8m3n5p7q9r1s0",
  }),
});
export type CategoryInput = z.output<typeof categoryInput>;

export const categoryPatch = patchOf(categoryContent);

export const categoriesQuery = z.object({
  storeId: z
    .string()
    .optional()
    .meta({ description: "Those of this store. Default: those of all stores of the caller's organization." }),
  ...pageQuery,
});
export type CategoriesQuery = z.output<typeof categoriesQuery>;

/** The category as the API answers it. */
export const categorySchema = z
  .object({
    id: id("cat"),
    storeId: id("store"),
    organizationId: id("org"),
    name: z.string(),
    description: z.string().nullable(),
    ...times,
  })
  .meta({ id: "StoreCategory", description: "Artifacts of a store that belong together." });
export type Category = Shown<z.output<typeof categorySchema>>;

export function renderCategory(row: StoreCategoryRow): Category {
  const { id, storeId, organizationId, name, description } = row;
  return { id, storeId, organizationId, name, description, ...timesOf(row) };
}
