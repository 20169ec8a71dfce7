import { z } from "zod";
import { createId } from "../../../lib/ids.ts";
import { nameInput, opaqueIdInput } from "../../kit/fields.ts";
import { patchOf } from "../../kit/merge.ts";

const MAX_SUGGESTIONS = 100;
const MAX_TOOLS = 200;

const text = (maxChars: number) => z.string().max(maxChars).nullable().default(null);
const suggestion = z.strictObject({
  id: z.string().min(1).max(64).optional().meta({ description: "Default: a new one." }),
  content: z.string().min(1).max(1_024).meta({ example: "Where is my order?" }),
});

export const agentInput = z.strictObject({
  uid: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 characters of A-Z a-z 0-9 _ . -")
    .optional()
    .meta({ description: "Unique in the organization. Default: the agent's id.", example: "support" }),
  identifier: z
    .string()
    .min(1)
    .max(255)
    .nullable()
    .default(null)
    .meta({ description: "What participants name it by; unique in the organization.", example: "support" }),
  name: nameInput.meta({ example: "Support" }),
  description: text(4_096),
  color: text(64).meta({ example: "#3366ff" }),
  baseModel: text(255),
  llmPrompt: text(65_536),
  blueprintId: z.string().nullable().default(null).meta({ description: "A blueprint." }),
  spaceId: z.string().nullable().optional().meta({ description: "Default: the caller's default space." }),
  serviceAccountId: z.string().nullable().default(null).meta({ description: "The account that it acts as." }),
  customAvatarId: opaqueIdInput,
  avatarPublicUrl: z
    .url({ protocol: /^https?$/, error: "must be a URL of http or https" })
    .max(2_048)
    .nullable()
    .default(null),
  knowledgeBaseId: z.string().nullable().default(null).meta({ description: "A knowledge base." }),
  querySuggestions: z
    .array(suggestion)
    .max(MAX_SUGGESTIONS)
    .default([])
    .superRefine((suggestions, context) => {
      const seen = new Set<string>();
      suggestions.forEach(({ id }, index) => {
        if (id !== undefined && seen.has(id))
          context.addIssue({ code: "custom", path: [index, "id"], message: `the id ${id} stands twice` });
        if (id !== undefined) seen.add(id);
      });
    })
    .meta({ description: "What a person may ask to begin with." }),
  toolIds: z
    .array(z.string().min(1).max(255))
    .max(MAX_TOOLS)
    .default([])
    .meta({ description: "Stored as given." }),
});
export type AgentInput = z.output<typeof agentInput>;

export const agentPatch = patchOf(agentInput);

/** As it is written: each suggestion has an id. */
export const contentOf = ({ querySuggestions, ...input }: AgentInput, nowMs: number) => ({
  ...input,
  querySuggestions: JSON.stringify(
    querySuggestions.map(({ id = createId("qs", nowMs), content }) => ({ id, content })),
  ),
});
