import { nameInput, organizationId, textUpTo } from "../kit/fields.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    states: TableOf<typeof fields>;
  }
}

const fields = {
  name: nameInput.meta({ example: "Checkout" }),
  description: textUpTo(4_096),
  organizationId,
};

export const states = standardResource({
  path: "/states",
  tag: "State",
  name: "state",
  table: "states",
  shape: shape({
    prefix: "state",
    fields,
    meta: { id: "State", description: "A set of variables and the schemas of their values." },
  }),
  audit: "state",
  notes: { delete: { description: "Deletes the state and its variables." } },
});
