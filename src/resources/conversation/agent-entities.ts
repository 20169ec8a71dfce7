import { z } from "zod";
import type { AgentRow, KnowledgeBaseRow } from "../../data/conversation-tables.ts";
import { id, type Shown, timestamp } from "../../http/fields.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { times, timesOf } from "../kit/times.ts";

/** Agents and what they know, as the API answers them, by themselves and inside other entities. */
const text = z.string().nullable();

export const knowledgeBaseSchema = z
  .object({
    id: id("kb"),
    name: z.string(),
    description: text,
    assetId: text,
    collectionId: text,
    organizationId: id("org"),
    ownerId: text,
    postId: text,
    spaceId: text,
    lastIndexedAt: timestamp.nullable(),
    metadata: z.record(z.string(), z.unknown()),
    ...times,
  })
  .meta({ id: "KnowledgeBase", description: "What agents know." });
export type KnowledgeBase = Shown<z.output<typeof knowledgeBaseSchema>>;

export const agentSchema = z
  .object({
    id: id("agt"),
    uid: z.string(),
    identifier: text.meta({ description: "What participants name it by.", example: "support" }),
    name: z.string(),
    description: text,
    color: text,
    baseModel: text,
    llmPrompt: text,
    blueprintId: text,
    organizationId: id("org"),
    spaceId: text,
    serviceAccountId: text.meta({ description: "The account that it acts as." }),
    customAvatarId: text,
    avatarPublicUrl: text,
    knowledgeBaseId: text,
    knowledgeBase: knowledgeBaseSchema.nullable().meta({ description: "Null inside another entity." }),
    querySuggestions: z.array(z.object({ id: z.string(), content: z.string() })),
    toolIds: z.array(z.string()),
    ...times,
  })
  .meta({ id: "Agent", description: "An AI agent." });
export type Agent = Shown<z.output<typeof agentSchema>>;

export function renderKnowledgeBase(row: KnowledgeBaseRow): KnowledgeBase {
  const { id, name, description, assetId, collectionId, organizationId, ownerId, postId, spaceId } = row;
  const lastIndexedAt = row.lastIndexedAt && formatTimestamp(row.lastIndexedAt.getTime());
  return {
    ...{ id, name, description, assetId, collectionId, organizationId, ownerId, postId, spaceId },
    ...{ lastIndexedAt, metadata: row.metadata },
    ...timesOf(row),
  };
}

export function renderAgent(row: AgentRow, knowledgeBase: KnowledgeBase | null = null): Agent {
  const { createdAt, updatedAt, ...fields } = row;
  return { ...fields, knowledgeBase, ...timesOf(row) };
}
