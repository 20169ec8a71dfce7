import { z } from "zod";
import { id, timestamp } from "../../http/fields.ts";
import { account } from "../iam/iam-entities.ts";
import { hidden, json, once, orElse, readOnly, time, withAnswer } from "../kit/field.ts";
import { idInput, organizationId, ownerId, spaceId, textInput, textUpTo } from "../kit/fields.ts";
import { freeFormInput } from "../kit/free-form.ts";
import { type Inside, shape, type TableOf } from "../kit/shape.ts";
import { agent } from "./agent-entities.ts";
import { attachments } from "./attachments.ts";

declare module "../../data/tables.ts" {
  interface Tables {
    participants: TableOf<typeof participantFields>;
    messages: TableOf<typeof messageFields>;
    conversations: TableOf<typeof conversationFields>;
    rooms: TableOf<typeof roomFields>;
  }
}

/**
 * Depth of nesting in responses. The requested entity is complete. A nested entity contains only its own fields, and a nested message
 * also its attachments. Below that, single entities are `null` and lists are omitted.
 */
const INSIDE = "`null` when nested in another entity.";
const NEWEST =
  "Only the newest entries, sorted from oldest to newest. A response contains up to 1,000 entries of each kind and 1 MiB of attachments, divided evenly among its entities.";
/** Total number of items, for lists that contain only the newest items. */
const count = z.int().meta({ description: "Total number of entries, listed or not." }).optional();
const MAX_INT4 = 2_147_483_647;
const text = z.string().nullable();

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
  /** The room of the message, or of its conversation. */
  roomId: hidden(z.string()),
  conversationId: readOnly(text.meta({ description: "`null` for a message in the room itself." })),
  // The live token belongs to the account that started the conversation, but a guest uses it. Such messages have no author.
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
  /** The room's space at the time the conversation was created. */
  spaceId: readOnly(text),
  title: titleInput,
  isLive: orElse(readOnly(z.boolean()), () => false),
  /** SHA-256 of the live token. */
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
