import { z } from "zod";
import { idExample } from "../../../http/fields.ts";
import { hidden, json, readOnly, unstored } from "../../kit/field.ts";
import { organizationId, textUpTo } from "../../kit/fields.ts";
import { type RowOf, shape, type TableOf } from "../../kit/shape.ts";
import { approvedBlueprint } from "../../store/approved-blueprints.ts";
import { pricingPlan } from "../../store/store-entities.ts";
import { blueprintChannels } from "../blueprint-channels.ts";

declare module "../../../data/tables.ts" {
  interface Tables {
    artifacts: TableOf<typeof fields>;
  }
}

const storeId = z
  .string()
  .nullable()
  .meta({ description: "where it is offered; null: nowhere", example: idExample("store") });
const status = z
  .enum(["draft", "pending", "published", "rejected"])
  .describe(
    "`draft`: in no store; `pending`: its store's organization has not approved it yet; `published`: to be had; `rejected`: refused or taken down by the store's organization",
  );

const fields = {
  /** Those of kind `blueprint` can be installed. */
  kind: z
    .enum(["blueprint", "agent", "collection", "flow", "form"])
    .describe("what it hands over; `blueprint` can be installed"),
  title: z.string().min(1).max(255).meta({ example: "Issue tracker" }),
  description: textUpTo(4_096),
  organizationId,
  /** Null also where it was deleted. */
  blueprintId: z
    .string()
    .nullable()
    .default(null)
    .meta({ description: "what an artifact of kind `blueprint` installs", example: idExample("bp") }),
  storeId: unstored(storeId.default(null)),
  /** `storeId` is stored here. */
  offeredIn: hidden(z.string().nullable()),
  categoryId: z.string().nullable().default(null).describe("a category of that store"),
  status: readOnly(status),
  /** Installs and upgrades by others take that where the store requires approval. */
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
        "The version of its blueprint that its store has approved, and that others install; null: none was to be approved.",
    }),
    awaitsApproval: z.boolean().meta({
      description:
        "Its store is asked to approve it, or a change of its blueprint: until that is approved, others install the version of before.",
    }),
  },
  check({ kind, blueprintId, storeId, categoryId }, context) {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    if (kind === "blueprint" && blueprintId === null)
      issue("blueprintId", "is needed for the kind blueprint");
    if (kind !== "blueprint" && blueprintId !== null) issue("blueprintId", "is for the kind blueprint only");
    if (categoryId !== null && storeId === null) issue("categoryId", "is for an artifact in a store only");
  },
  meta: { id: "Artifact", description: "Something to be had from a store." },
});

export const artifactFilters = {
  storeId: z.string().optional().meta({
    description: "Those of this store that the caller sees. Default: those of the caller's organization.",
  }),
  categoryId: z.string().optional().meta({ description: "The same of a category of a store." }),
  status: status.optional(),
  awaitsApproval: z
    .enum(["true"])
    .optional()
    .meta({ description: "Those that their store is asked to approve, or a change of them." }),
};

/** A blueprint as it stands to be approved. */
export const offeredBlueprintSchema = z
  .object({
    ...approvedBlueprint.shape,
    channels: blueprintChannels,
  })
  .meta({ id: "OfferedBlueprint", description: "The blueprint of an artifact, as it is now." });

export const approveSchema = z.strictObject({
  version: z.int().min(1).optional().meta({
    description: "The version of its blueprint that was looked at: 409 where it is another by now.",
  }),
});
