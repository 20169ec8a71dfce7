import { z } from "zod";
import type { ArtifactRow } from "../../data/tables.ts";
import { id, type Shown, timestamp } from "../../http/fields.ts";
import { formatTimestamp } from "../../lib/clock.ts";

/** What an artifact hands over. Those of kind `blueprint` can be installed. */
export const ARTIFACT_KINDS = ["blueprint", "agent", "collection", "flow", "form"] as const;

const price = z
  .string()
  .regex(
    /^(?:0|[1-9]\d{0,14})(?:\.\d{1,4})?$/,
    "must be a decimal number of at most 15 digits and 4 decimals",
  )
  .nullable()
  .describe("a decimal number; null: it is free")
  .meta({ example: "19.90" });
const currency = z
  .string()
  .regex(/^[A-Z]{3}$/, "must be a code of ISO 4217")
  .nullable()
  .describe("ISO 4217; given with a price, and only then")
  .meta({ example: "EUR" });
const kind = z.enum(ARTIFACT_KINDS).describe("what it hands over; `blueprint` can be installed");
const blueprintId = z.string().nullable().describe("what an artifact of kind `blueprint` installs");
const storeId = z.string().min(1).max(255).nullable();

/** What is written of an artifact, and what a patched one must still be. */
export const artifactInputSchema = z
  .strictObject({
    kind,
    title: z.string().min(1).max(255),
    description: z.string().max(4_096).nullable().default(null),
    blueprintId: blueprintId.default(null),
    storeId: storeId.default(null),
    price: price.default(null),
    currency: currency.default(null),
  })
  .superRefine((artifact, context) => {
    const issue = (path: string, message: string) =>
      context.addIssue({ code: "custom", path: [path], message });
    const isBlueprint = artifact.kind === "blueprint";
    if (isBlueprint && artifact.blueprintId === null)
      issue("blueprintId", "is needed for the kind blueprint");
    if (!isBlueprint && artifact.blueprintId !== null) issue("blueprintId", "is for the kind blueprint only");
    if (artifact.price === null && artifact.currency !== null) issue("price", "is needed with a currency");
    if (artifact.price !== null && artifact.currency === null) issue("currency", "is needed with a price");
  });

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
    price,
    currency,
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "Artifact", description: "Something to be had from a store." });
export type Artifact = Shown<z.output<typeof artifactSchema>>;

export function renderArtifact(row: ArtifactRow): Artifact {
  const { id, kind, title, description, organizationId, blueprintId, storeId, price, currency } = row;
  return {
    ...{ id, kind, title, description, organizationId, blueprintId, storeId, price, currency },
    createdAt: formatTimestamp(row.createdAt.getTime()),
    updatedAt: formatTimestamp(row.updatedAt.getTime()),
  };
}
