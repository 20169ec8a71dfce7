import { z } from "zod";
import { routingSchema } from "../../../event/intake.ts";
import { idExample } from "../../../http/fields.ts";
import { hidden, json, readOnly, unstored } from "../../kit/field.ts";
import { organizationId, textUpTo } from "../../kit/fields.ts";
import { type RowOf, shape, type TableOf } from "../../kit/shape.ts";
import { approvedBlueprint } from "../../store/approved-blueprints.ts";
import { pricingPlan } from "../../store/schema.ts";
import { blueprintChannels } from "../blueprint-channels.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    artifacts: TableOf<typeof fields>;
  }
}

const storeId = z
  .string()
  .nullable()
  .meta({ description: "Store that offers the artifact. Null for a draft.", example: idExample("store") });
const status = z
  .enum(["draft", "pending", "published", "rejected"])
  .describe(
    "`draft`: not in a store. `pending`: waits for approval by the store's organization. `published`: available in the store. `rejected`: rejected or unpublished by the store's organization.",
  );

const fields = {
  kind: z
    .enum(["blueprint", "agent", "collection", "flow", "form"])
    .describe("Kind of content. Only artifacts of kind `blueprint` can be installed."),
  title: z.string().min(1).max(255).meta({ example: "Issue tracker" }),
  description: textUpTo(4_096),
  organizationId,
  /** Set to `null` when the blueprint is deleted. */
  blueprintId: z
    .string()
    .nullable()
    .default(null)
    .meta({
      description: "Blueprint to install. Required for the kind `blueprint`.",
      example: idExample("bp"),
    }),
  storeId: unstored(storeId.default(null)),
  /** Column that stores the API field `storeId`. */
  offeredIn: hidden(z.string().nullable()),
  categoryId: z
    .string()
    .nullable()
    .describe("Category of the store. Null for an artifact without a category.")
    .default(null),
  status: readOnly(status),
  /** Copy of the blueprint as the store approved it. Other organizations install this copy if the store requires approval. */
  approved: hidden(json(approvedBlueprint.nullable())),
};

export type ArtifactRow = RowOf<typeof fields>;

export const artifact = shape({
  prefix: "art",
  fields,
  inside: {
    storeId,
    pricingPlans: z.array(pricingPlan.entity),
    approvedVersion: z.int().nullable().meta({
      description:
        "Blueprint version that the store approved and that other organizations install. Null if no version was approved.",
    }),
    awaitsApproval: z.boolean().meta({
      description:
        "Whether the artifact, or a change to its blueprint, waits for the store's approval. Until then, other organizations install the previously approved version.",
    }),
  },
  check({ kind, blueprintId, storeId, categoryId }, context) {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if (kind === "blueprint" && blueprintId === null)
      issue("blueprintId", "is required for the kind blueprint");
    if (kind !== "blueprint" && blueprintId !== null)
      issue("blueprintId", "is only allowed for the kind blueprint");
    if (categoryId !== null && storeId === null) issue("categoryId", "is only allowed together with storeId");
  },
  meta: { id: "Artifact", description: "An item that a store offers, such as a blueprint." },
});

export const artifactFilters = {
  storeId: z.string().optional().meta({
    description:
      "Only artifacts of this store. If neither `storeId` nor `categoryId` is set, lists the artifacts of your organization.",
  }),
  categoryId: z.string().optional().meta({ description: "Only artifacts of this store category." }),
  status: status.optional(),
  awaitsApproval: z.enum(["true"]).optional().meta({
    description: "Only artifacts that wait for approval, as a whole or for a new version of their blueprint.",
  }),
};

export const offeredBlueprintSchema = z
  .object({
    ...approvedBlueprint.shape,
    channels: blueprintChannels,
    intake: routingSchema
      .extend({ config: z.record(z.string(), z.unknown()) })
      .nullable()
      .meta({ description: "Settings of the blueprint's intake. Null if it has none." }),
  })
  .meta({ id: "OfferedBlueprint", description: "The current blueprint of an artifact." });

export const approveSchema = z.strictObject({
  version: z.int().min(1).optional().meta({
    description:
      "Blueprint version that you reviewed. The request fails with 409 if the current version differs.",
  }),
});
