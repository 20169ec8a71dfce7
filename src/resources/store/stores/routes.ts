import { z } from "zod";
import { decimal } from "../../kit/field.ts";
import { nameInput, organizationId, textUpTo } from "../../kit/fields.ts";
import { shape, type TableOf } from "../../kit/shape.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { approvePublished } from "../approved-blueprints.ts";
import { visibleStores } from "../store-scope.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    stores: TableOf<typeof fields>;
  }
}

const image = textUpTo(2_048).meta({ description: "An address or an asset. Stored as given." });
const page = z
  .string()
  .max(2_048)
  .regex(/^https?:\/\/\S+$/, "must be an http or https address")
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
  allowSubmissions: z
    .boolean()
    .default(false)
    .meta({ description: "While the store is public, other organizations may offer artifacts in it." }),
  isPublic: z.boolean().default(false).meta({
    description:
      "Every organization may read the store, its categories, and its published artifacts with their plans and reviews, and may order and install these.",
  }),
  requireApproval: z.boolean().default(true).meta({
    description: "What others offer is published once the store's organization has approved it.",
  }),
  commissionRate: decimal(
    commissionRate
      .default(0)
      .meta({ description: "Percent of an order's subtotal that the store keeps.", example: 12.5 }),
  ),
};

/** Stores, each of one organization, and open to all where it is public. */
export const stores = standardResource({
  path: "/stores",
  tag: "Store",
  name: "store",
  table: "stores",
  shape: shape({
    prefix: "store",
    fields,
    meta: { id: "Store", description: "Where artifacts are to be had." },
  }),
  audit: "store",
  visible: visibleStores,
  filters: {
    query: {
      isPublic: z.enum(["true"]).optional().meta({
        description: "The public stores of all organizations. Default: the stores of the caller's.",
      }),
    },
    find: (db, _, { isPublic }) => isPublic && db.selectFrom("stores").where("isPublic", "=", true),
  },
  identified: true,
  async afterWrite({ trx, before, row }) {
    if (before?.requireApproval === false && row.requireApproval) await approvePublished(trx, row.id);
  },
  inUse: {
    when: "there are artifacts in it, or orders of it",
    message: "There are artifacts in the store, or orders of it.",
  },
  notes: {
    get: { description: "One of the caller's organization, or a public one." },
    update: {
      description:
        "`id` repeats the path's. What is published stays so when `requireApproval` changes, as it is then; orders keep the commission that they were made with.",
    },
    delete: { description: "With its categories." },
  },
});
