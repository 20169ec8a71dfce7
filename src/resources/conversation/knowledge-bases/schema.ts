import { z } from "zod";
import { nameInput, opaqueIdInput } from "../../kit/fields.ts";
import { mapInput } from "../../kit/free-form.ts";
import { patchOf } from "../../kit/merge.ts";

const lastIndexedAt = z.iso
  .datetime({ offset: true })
  .refine(
    (text) => Math.abs(Date.parse(text)) < Date.UTC(9_999),
    "must be a time that comes before the year 9999",
  )
  .nullable()
  .default(null)
  .meta({ description: "When it was last made searchable.", example: "2026-01-31T09:30:00.000Z" });

export const knowledgeBaseInput = z.strictObject({
  name: nameInput.meta({ example: "Handbook" }),
  description: z.string().max(4_096).nullable().default(null),
  assetId: opaqueIdInput,
  collectionId: z
    .string()
    .nullable()
    .default(null)
    .meta({ description: "A collection of the organization." }),
  ownerId: z.string().nullable().optional().meta({ description: "An account. Default: the caller's." }),
  postId: opaqueIdInput,
  spaceId: z.string().nullable().optional().meta({ description: "Default: the caller's default space." }),
  lastIndexedAt,
  metadata: mapInput,
});
export type KnowledgeBaseInput = z.output<typeof knowledgeBaseInput>;

export const knowledgeBasePatch = patchOf(knowledgeBaseInput);

/** As it is written. */
export const contentOf = ({ lastIndexedAt, metadata, ...input }: KnowledgeBaseInput) => ({
  ...input,
  lastIndexedAt: lastIndexedAt === null ? null : new Date(lastIndexedAt),
  metadata: JSON.stringify(metadata),
});
