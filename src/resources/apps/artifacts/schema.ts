import { z } from "zod";
import type { ArtifactRow } from "../../../data/store-tables.ts";
import { id, type Shown } from "../../../http/fields.ts";
import { pageQuery } from "../../../http/page.ts";
import { patchOf } from "../../kit/merge.ts";
import { times, timesOf } from "../../kit/times.ts";
import { type PricingPlan, pricingPlan } from "../../store/store-entities.ts";

/** What an artifact hands over. Those of kind `blueprint` can be installed. */
const ARTIFACT_KINDS = ["blueprint", "agent", "collection", "flow", "form"] as const;

const kind = z.enum(ARTIFACT_KINDS).describe("what it hands over; `blueprint` can be installed");
const blueprintId = z.string().nullable().describe("what an artifact of kind `blueprint` installs");
const storeId = z.string().nullable().describe("where it is offered; null: nowhere");
const categoryId = z.string().nullable().describe("a category of that store");
const status = z
  .enum(["draft", "pending", "published", "rejected"])
  .describe(
    "`draft`: in no store; `pending`: its store's organization has not approved it yet; `published`: to be had; `rejected`: refused or taken down by the store's organization",
  );

/** What is written of an artifact, and what a patched one must still be. */
export const artifactInputSchema = z
  .strictObject({
    kind,
    title: z.string().min(1).max(255).meta({ example: "Issue tracker" }),
    description: z.string().max(4_096).nullable().default(null),
    blueprintId: blueprintId.default(null),
    storeId: storeId.default(null),
    categoryId: categoryId.default(null),
  })
  .superRefine((artifact, context) => {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    const isBlueprint = artifact.kind === "blueprint";
    if (isBlueprint && artifact.blueprintId === null)
      issue("blueprintId", "is needed for the kind blueprint");
    if (!isBlueprint && artifact.blueprintId !== null) issue("blueprintId", "is for the kind blueprint only");
    if (artifact.categoryId !== null && artifact.storeId === null)
      issue("categoryId", "is for an artifact in a store only");
  });
export type ArtifactInput = z.output<typeof artifactInputSchema>;

export const artifactPatchSchema = patchOf(artifactInputSchema);

export const artifactsQuery = z.object({
  storeId: z.string().optional().meta({
    description: "Those of this store that the caller sees. Default: those of the caller's organization.",
  }),
  categoryId: z.string().optional().meta({ description: "The same of a category of a store." }),
  status: status.optional(),
  ...pageQuery,
});
export type ArtifactsQuery = z.output<typeof artifactsQuery>;

/** The artifact as the API answers it. */
export const artifactSchema = z
  .object({
    id: id("art"),
    kind,
    title: z.string(),
    description: z.string().nullable(),
    organizationId: id("org"),
    blueprintId,
    storeId,
    categoryId,
    status,
    pricingPlans: z.array(pricingPlan.entity),
    ...times,
  })
  .meta({ id: "Artifact", description: "Something to be had from a store." });
export type Artifact = Shown<z.output<typeof artifactSchema>>;

/** What is written of an artifact. */
export const contentOf = (row: ArtifactRow): ArtifactInput => {
  const { kind, title, description, blueprintId, categoryId } = row;
  return { kind, title, description, blueprintId, storeId: row.offeredIn, categoryId };
};

export function renderArtifact(row: ArtifactRow, pricingPlans: readonly PricingPlan[]): Artifact {
  const { id, organizationId, status } = row;
  return { id, organizationId, ...contentOf(row), status, pricingPlans, ...timesOf(row) };
}
