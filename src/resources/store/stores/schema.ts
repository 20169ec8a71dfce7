import { z } from "zod";
import type { StoreRow } from "../../../data/store-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { nameInput } from "../../kit/fields.ts";
import { identifiedPatchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";

const image = z.string().max(2_048).nullable().default(null).meta({
  description: "An address or an asset. Stored as given.",
});
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
  .refine((rate) => !/\.\d{5}|e-/.test(String(rate)), "must have at most 4 decimals")
  .meta({ description: "Percent of an order's subtotal that the store keeps.", example: 12.5 });

export const storeInput = z.strictObject({
  name: nameInput.meta({ example: "Example store" }),
  description: z.string().max(4_096).nullable().default(null),
  logo: image,
  banner: image,
  privacyPolicyUrl: page,
  termsUrl: page,
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
  commissionRate: commissionRate.default(0),
});
export type StoreInput = z.output<typeof storeInput>;

export const storePatch = identifiedPatchOf(storeInput);

export const storesQuery = z.object({
  isPublic: z
    .enum(["true"])
    .optional()
    .meta({ description: "The public stores of all organizations. Default: the stores of the caller's." }),
  ...pageQuery,
});
export type StoresQuery = z.output<typeof storesQuery>;

/** The store as the API answers it. */
export const storeSchema = z
  .object({
    id: id("store"),
    name: z.string(),
    description: z.string().nullable(),
    logo: z.string().nullable(),
    banner: z.string().nullable(),
    privacyPolicyUrl: z.string().nullable(),
    termsUrl: z.string().nullable(),
    organizationId: id("org"),
    allowSubmissions: z.boolean(),
    isPublic: z.boolean(),
    requireApproval: z.boolean(),
    commissionRate: z.number(),
    ...times,
  })
  .meta({ id: "Store", description: "Where artifacts are to be had." });
export type Store = Shown<z.output<typeof storeSchema>>;

/** What is written of a store. */
export const contentOf = (row: StoreRow): StoreInput => {
  const { name, description, logo, banner, privacyPolicyUrl, termsUrl } = row;
  const { allowSubmissions, isPublic, requireApproval } = row;
  return {
    ...{ name, description, logo, banner, privacyPolicyUrl, termsUrl },
    ...{ allowSubmissions, isPublic, requireApproval, commissionRate: Number(row.commissionRate) },
  };
};

export const renderStore = (row: StoreRow): Store => ({
  ...{ id: row.id, organizationId: row.organizationId },
  ...contentOf(row),
  ...timesOf(row),
});
