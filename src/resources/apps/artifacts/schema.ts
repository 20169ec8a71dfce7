import { z } from "zod";
import { idExample } from "../../../http/fields.ts";
import { aside, hidden, kept } from "../../kit/field.ts";
import { organizationId, textOf } from "../../kit/fields.ts";
import { type RowOf, shape, type TableOf } from "../../kit/shape.ts";
import { pricingPlan } from "../../store/store-entities.ts";

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
  description: textOf(4_096),
  organizationId,
  /** Null also where it was deleted. */
  blueprintId: z
    .string()
    .nullable()
    .default(null)
    .meta({ description: "what an artifact of kind `blueprint` installs", example: idExample("bp") }),
  storeId: aside(storeId.default(null)),
  /** `storeId` is stored here. */
  offeredIn: hidden(z.string().nullable()),
  categoryId: z.string().nullable().default(null).describe("a category of that store"),
  status: kept(status),
};

export type ArtifactRow = RowOf<typeof fields>;

export const artifact = shape({
  prefix: "art",
  fields,
  inside: { storeId, pricingPlans: z.array(pricingPlan.entity) },
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
};
