import { z } from "zod";
import { id, timestamp } from "../../http/fields.ts";
import { account } from "../iam/schema.ts";
import { hidden, json, once, orElse, readOnly, time, withAnswer } from "../kit/field.ts";
import {
  idInput,
  nameInput,
  opaqueIdInput,
  organizationId,
  ownerId,
  spaceId,
  textInput,
  textUpTo,
  uidField,
} from "../kit/fields.ts";
import { freeFormInput, mapInput } from "../kit/free-form.ts";
import { type Inside, shape, type TableOf } from "../kit/shape.ts";
import { attachments } from "./attachments.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    agents: TableOf<typeof agentFields>;
    knowledgeBases: TableOf<typeof knowledgeBaseFields>;
    participants: TableOf<typeof participantFields>;
    messages: TableOf<typeof messageFields>;
    conversations: TableOf<typeof conversationFields>;
    rooms: TableOf<typeof roomFields>;
  }
}

/**
 * A nested entity contains only its own fields, and a nested message also its attachments. Below that level, single
 * entities are `null` and lists are omitted.
 */
const INSIDE = "`null` when nested in another entity.";
const NEWEST =
  "Only the newest entries, sorted from oldest to newest. A response contains up to 1,000 entries of each kind and 1 MiB of attachments, divided evenly among its entities.";
/** Total number of items. The list itself contains only the newest items. */
const count = z.int().meta({ description: "Total number of entries, listed or not." }).optional();
const MAX_SUGGESTIONS = 100;
const MAX_TOOLS = 200;
const MAX_INT4 = 2_147_483_647;
const text = z.string().nullable();

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
    knowledgeBase: knowledgeBase.entity.nullable().meta({ description: INSIDE }),
  },
  meta: { id: "Agent", description: "An AI agent." },
});

const participantFields = {
  roomId: readOnly(id("room")),
  conversationId: once(
    idInput("The conversation of the room that the participant belongs to. `null` for the room itself."),
  ),
  accountId: idInput("The participant's account. `null` for a participant without an account."),
  agentIdentifier: textInput.meta({ description: "An agent's `identifier`.", example: "support" }),
  firstName: textInput,
  lastName: textInput,
  autoJoin: z
    .boolean()
    .default(false)
    .meta({ description: "Whether the participant joins each new conversation of the room." }),
  isAdmin: z.boolean().default(false),
  isAgent: z.boolean().default(false),
  scope: json(freeFormInput),
  status: json(freeFormInput),
};
export const participant = shape({
  prefix: "part",
  fields: participantFields,
  inside: {
    account: account.part.nullable().meta({ description: INSIDE }),
    agent: agent.entity
      .nullable()
      .meta({ description: `The agent with this \`agentIdentifier\`, if it exists. ${INSIDE}` }),
  },
  meta: { id: "Participant", description: "A participant of a room or of one of its conversations." },
});

export const contentInput = z.string().min(1).max(32_768).meta({ example: "Hello" });
const messageFields = {
  organizationId,
  /** Room that contains the message. For a message of a conversation, the room of that conversation. */
  roomId: hidden(z.string()),
  conversationId: readOnly(text.meta({ description: "`null` for a message in the room itself." })),
  // Messages sent with a guest token have no author, because the token's account only started the conversation.
  authorId: orElse(
    readOnly(
      text.meta({
        description: "`null` if the message was sent with a live token, or its author was deleted.",
      }),
    ),
    ({ caller }) => (caller.by === "liveToken" ? null : caller.accountId),
  ),
  content: contentInput,
  aiRole: z.int().min(-MAX_INT4).max(MAX_INT4).nullable().default(null),
  attachments,
  updatedAt: hidden(time(timestamp)),
};
export const message = shape({
  prefix: "msg",
  fields: messageFields,
  inside: {
    get conversation(): z.ZodNullable<Inside<typeof conversationFields>> {
      return conversation.part.nullable().meta({ description: INSIDE });
    },
    get room(): z.ZodNullable<Inside<typeof roomFields>> {
      return room.part
        .nullable()
        .meta({ description: `${INSIDE} Also \`null\` for a caller with a live token.` });
    },
  },
  meta: { id: "Message", description: "A message in a room or conversation." },
});

export const roomIdInput = z
  .string()
  .meta({ description: "A room.", example: "room_01jc9x2k4v8m3n5p7q9r1s0" });
export const titleInput = textInput.meta({ example: "Order 17" });
const conversationFields = {
  organizationId,
  roomId: withAnswer(once(roomIdInput), id("room")),
  authorId: orElse(readOnly(text), ({ caller }) => caller.accountId),
  ownerId,
  /** The room's space when the conversation was created. A later change of the room does not affect it. */
  spaceId: readOnly(text),
  title: titleInput,
  isLive: orElse(readOnly(z.boolean()), () => false),
  /** SHA-256 of the token with which guests access the conversation. */
  liveTokenHash: hidden(z.custom<Buffer>().nullable()),
  endedAt: hidden(time(timestamp.nullable())),
};
export const conversation = shape({
  prefix: "conv",
  fields: conversationFields,
  inside: {
    liveToken: text.meta({
      description: "Only present in the response of `CreateLiveConversation`, otherwise `null`.",
    }),
    messages: z.array(message.entity).meta({ description: NEWEST }).optional(),
    messageCount: count,
    participants: z.array(participant.entity).meta({ description: NEWEST }).optional(),
    participantCount: count,
  },
  meta: { id: "Conversation", description: "A conversation in a room." },
});

const roomFields = {
  title: textInput.meta({ example: "Support" }),
  description: textUpTo(4_096),
  hash: textInput.meta({ description: "Stored as given." }),
  organizationId,
  ownerId,
  spaceId,
  allowGuestConversations: z.boolean().default(false).meta({
    description: "Whether guests may start conversations. Clients read this; Inlet does not enforce it.",
  }),
  allowMessages: z
    .boolean()
    .default(true)
    .meta({ description: "Whether the room and its conversations accept messages." }),
  immutable: z
    .boolean()
    .default(false)
    .meta({ description: "Whether the room is frozen. An immutable room can never be changed again." }),
};
export const room = shape({
  prefix: "room",
  fields: roomFields,
  inside: {
    conversations: z.array(conversation.part).meta({ description: NEWEST }).optional(),
    conversationCount: count,
    messages: z
      .array(message.entity)
      .meta({ description: `Messages of the room and its conversations. ${NEWEST}` })
      .optional(),
    messageCount: count,
    participants: z
      .array(participant.entity)
      .meta({ description: `Participants of the room itself. ${NEWEST}` })
      .optional(),
    participantCount: count,
  },
  meta: { id: "Room", description: "A place for conversations and messages." },
});
