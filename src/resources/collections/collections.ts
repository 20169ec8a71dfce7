import { nameInput, organizationId, textUpTo } from "../kit/fields.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    collections: TableOf<typeof fields>;
  }
}

const fields = {
  name: nameInput.meta({ example: "Customers" }),
  description: textUpTo(4_096),
  organizationId,
};

export const collections = standardResource({
  path: "/collections",
  tag: "Collections",
  name: "collection",
  table: "collections",
  shape: shape({
    prefix: "col",
    fields,
    meta: { id: "Collection", description: "A set of records with the same fields." },
  }),
  audit: "collection",
  inUse: {
    when: "a knowledge base uses the collection",
    message: "The collection is used by knowledge bases, so it cannot be deleted.",
  },
  notes: { delete: { description: "Deletes the collection with its fields and records." } },
});
