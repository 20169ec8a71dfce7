import { z } from "zod";
import { decimal } from "../kit/field.ts";
import { nameInput, organizationId, textUpTo } from "../kit/fields.ts";
import { shape, type TableOf } from "../kit/shape.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { approvePublished } from "./approved-blueprints.ts";
import { visibleStores } from "./store-scope.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    stores: TableOf<typeof fields>;
  }
}

const image = textUpTo(2_048).meta({ description: "A URL or an asset id. Stored as given." });
const page = z
  .string()
  .max(2_048)
  .regex(/^https?:\/\/\S+$/, "must be an http or https URL")
  .nullable()
  .default(null)
  .meta({ example: "https://example.com/terms" });
const commissionRate = z
  .number()
  .min(0)
  .max(100)
  .refine((rate) => !/\.\d{5}|e-/.test(String(rate)), "must have at most 4 decimals");

const fields = {
  name: nameInput.meta({ example: "Example store" }),
  description: textUpTo(4_096),
  logo: image,
  banner: image,
  privacyPolicyUrl: page,
  termsUrl: page,
  organizationId,
  allowSubmissions: z.boolean().default(false).meta({
    description: "Whether other organizations may offer artifacts in the store while it is public.",
  }),
  isPublic: z.boolean().default(false).meta({
    description:
      "Whether the store is open to every organization. All organizations can then read the store, its categories, and its published artifacts with plans and reviews. They can also order and install these artifacts.",
  }),
  requireApproval: z.boolean().default(true).meta({
    description:
      "Whether the store's organization must approve artifacts of other organizations before they are published.",
  }),
  commissionRate: decimal(
    commissionRate
      .default(0)
      .meta({ description: "The store's share of an order's subtotal, in percent.", example: 12.5 }),
  ),
};

export const stores = standardResource({
  path: "/stores",
  tag: "Store",
  name: "store",
  table: "stores",
  shape: shape({
    prefix: "store",
    fields,
    meta: { id: "Store", description: "A store that offers artifacts." },
  }),
  audit: "store",
  visible: visibleStores,
  filters: {
    query: {
      isPublic: z.enum(["true"]).optional().meta({
        description:
          "Lists the public stores of all organizations. Default: the stores of the caller's organization.",
      }),
    },
    find: (db, _, { isPublic }) => isPublic && db.selectFrom("stores").where("isPublic", "=", true),
  },
  identified: true,
  async afterWrite({ trx, before, row }) {
    if (before?.requireApproval === false && row.requireApproval) await approvePublished(trx, row.id);
  },
  inUse: {
    when: "the store has artifacts or orders",
    message: "The store has artifacts or orders, so it cannot be deleted.",
  },
  notes: {
    get: { description: "Returns a store of the caller's organization or a public store." },
    update: {
      description:
        "`id` must equal the id in the path. When `requireApproval` changes, published artifacts stay published in their current version. Orders keep the commission from their creation.",
    },
    delete: { description: "Deletes the store and its categories." },
  },
});
