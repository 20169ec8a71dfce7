import { z } from "zod";
import { once } from "../../kit/field.ts";
import { nameInput, organizationId, textUpTo } from "../../kit/fields.ts";
import { STORES } from "../../kit/references.ts";
import { shape, type TableOf } from "../../kit/shape.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { visibleCategories } from "../store-scope.ts";

declare module "../../../data/tables.ts" {
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
  /** That of its store. */
  organizationId,
  name: nameInput.meta({ description: "Unique in its store.", example: "Integrations" }),
  description: textUpTo(4_096),
};

const category = shape({
  prefix: "cat",
  fields,
  meta: { id: "StoreCategory", description: "Artifacts of a store that belong together." },
});

/** The categories of stores. They are seen with their store. */
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
    when: "the store has a category of that name already",
    message: "The store has a category of that name already.",
  },
  inUse: { when: "there are artifacts in it", message: "There are artifacts in the category." },
  visible: visibleCategories,
  filters: {
    query: {
      storeId: z.string().optional().meta({
        description: "Those of this store. Default: those of all stores of the caller's organization.",
      }),
    },
    find: (db, caller, { storeId }) =>
      storeId === undefined ? undefined : visibleCategories(db, caller).where("storeId", "=", storeId),
  },
  notes: { get: { description: "One of a store of the caller's organization, or of a public one." } },
});
