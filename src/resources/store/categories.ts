import { z } from "zod";
import { once } from "../kit/field.ts";
import { nameInput, organizationId, textUpTo } from "../kit/fields.ts";
import { STORES } from "../kit/references.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { visibleCategories } from "./store-scope.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    storeCategories: TableOf<typeof fields>;
  }
}

const fields = {
  storeId: once(
    z.string().meta({
      description: "A store of the caller's organization.",
      example: "store_01jc9x2k4v8m3n5p7q9r1s0",
    }),
  ),
  organizationId,
  name: nameInput.meta({ description: "Unique within the store.", example: "Integrations" }),
  description: textUpTo(4_096),
};

const category = shape({
  prefix: "cat",
  fields,
  meta: { id: "StoreCategory", description: "A category of artifacts in a store." },
});

/** Routes of categories. Everyone who can see a store can see its categories. */
export const storeCategories = standardResource({
  path: "/stores/categories",
  tag: "Store",
  name: "category",
  words: "store category",
  table: "storeCategories",
  shape: category,
  audit: "storeCategory",
  references: { storeId: STORES },
  taken: {
    when: "the store already has a category with this name",
    message: "The store already has a category with this name.",
  },
  inUse: {
    when: "the category contains artifacts",
    message: "The category contains artifacts, so it cannot be deleted.",
  },
  visible: visibleCategories,
  filters: {
    query: {
      storeId: z.string().optional().meta({
        description:
          "Only categories of this store. Default: categories of all stores of the caller's organization.",
      }),
    },
    find: (db, caller, { storeId }) =>
      storeId === undefined ? undefined : visibleCategories(db, caller).where("storeId", "=", storeId),
  },
  notes: {
    get: { description: "Returns a category of the organization's own stores or of a public store." },
  },
});
