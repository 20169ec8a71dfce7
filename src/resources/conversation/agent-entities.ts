import { z } from "zod";
import { json, time } from "../kit/field.ts";
import {
  idInput,
  nameInput,
  opaqueIdInput,
  organizationId,
  ownerId,
  spaceId,
  textUpTo,
  uidField,
} from "../kit/fields.ts";
import { mapInput } from "../kit/free-form.ts";
import { shape, type TableOf } from "../kit/shape.ts";

const MAX_SUGGESTIONS = 100;
const MAX_TOOLS = 200;

declare module "../../data/tables.ts" {
  interface Tables {
    agents: TableOf<typeof agentFields>;
    knowledgeBases: TableOf<typeof knowledgeBaseFields>;
  }
}

const knowledgeBaseFields = {
  name: nameInput.meta({ example: "Handbook" }),
  description: textUpTo(4_096),
  assetId: opaqueIdInput,
  collectionId: idInput("A collection of the organization."),
  organizationId,
  ownerId,
  postId: opaqueIdInput,
  spaceId,
  lastIndexedAt: time(
    z.iso
      .datetime({ offset: true })
      .refine((text) => Math.abs(Date.parse(text)) < Date.UTC(9_999), "must be a time before the year 9999")
      .nullable()
      .default(null)
      .meta({
        description: "When the knowledge base was last indexed for search.",
        example: "2026-01-31T09:30:00.000Z",
      }),
  ),
  metadata: json(mapInput, z.record(z.string(), z.unknown())),
};

export const knowledgeBase = shape({
  prefix: "kb",
  fields: knowledgeBaseFields,
  meta: { id: "KnowledgeBase", description: "A source of knowledge for agents." },
});

const suggestion = z.strictObject({
  id: z.string().min(1).max(64).optional().meta({ description: "Default: a new id." }),
  content: z.string().min(1).max(1_024).meta({ example: "Where is my order?" }),
});

const suggestions = z
  .array(suggestion)
  .max(MAX_SUGGESTIONS)
  .default([])
  .superRefine((all, context) => {
    const seen = new Set<string>();
    all.forEach(({ id }, index) => {
      if (id !== undefined && seen.has(id))
        context.addIssue({ code: "custom", path: [index, "id"], message: `the id ${id} is used twice` });
      if (id !== undefined) seen.add(id);
    });
  })
  .meta({ description: "Suggested first questions." });

const agentFields = {
  uid: uidField("agent"),
  identifier: z.string().min(1).max(255).nullable().default(null).meta({
    description: "The name by which participants refer to the agent. Unique within the organization.",
    example: "support",
  }),
  name: nameInput.meta({ example: "Support" }),
  description: textUpTo(4_096),
  color: textUpTo(64).meta({ example: "#3366ff" }),
  baseModel: textUpTo(255),
  llmPrompt: textUpTo(65_536),
  blueprintId: idInput("A blueprint."),
  organizationId,
  spaceId,
  serviceAccountId: idInput("The account that the agent acts as."),
  customAvatarId: opaqueIdInput,
  avatarPublicUrl: z
    .url({ protocol: /^https?$/, error: "must be an http or https URL" })
    .max(2_048)
    .nullable()
    .default(null),
  knowledgeBaseId: idInput("A knowledge base."),
  querySuggestions: json(suggestions, z.array(z.object({ id: z.string(), content: z.string() }))),
  toolIds: z
    .array(z.string().min(1).max(255))
    .max(MAX_TOOLS)
    .default([])
    .meta({ description: "Stored as given." }),
};

export const agent = shape({
  prefix: "agt",
  fields: agentFields,
  inside: {
    knowledgeBase: knowledgeBase.entity
      .nullable()
      .meta({ description: "`null` when nested in another entity." }),
  },
  meta: { id: "Agent", description: "An AI agent." },
});
