import { z } from "zod";
import { id, timestamp } from "../../http/fields.ts";
import { account } from "../iam/iam-entities.ts";
import { hidden, json, once, orElse, readOnly, time, withAnswer } from "../kit/field.ts";
import { idInput, organizationId, ownerId, spaceId, textInput, textUpTo } from "../kit/fields.ts";
import { freeFormInput } from "../kit/free-form.ts";
import { type Inside, shape, type TableOf } from "../kit/shape.ts";
import { agent } from "./agent-entities.ts";
import { attachments } from "./attachments.ts";

/**
 * Rooms and conversations, as they are written, stored and answered. The entity that is asked for is complete; those inside it
 * carry their own fields, a message its attachments; of what would follow one is null, many are absent.
 */
declare module "../../data/tables.ts" {
  interface Tables {
    participants: TableOf<typeof participantFields>;
    messages: TableOf<typeof messageFields>;
    conversations: TableOf<typeof conversationFields>;
    rooms: TableOf<typeof roomFields>;
  }
}

const INSIDE = "Null inside another entity.";
const NEWEST =
  "The newest, oldest first; an answer holds 1,000 of a kind and 1 MiB of attachments, shared out evenly.";
/** Of a list that holds the newest alone. */
const count = z.int().meta({ description: "How many there are in all." }).optional();
const MAX_INT4 = 2_147_483_647;
const text = z.string().nullable();

const participantFields = {
  roomId: readOnly(id("room")),
  conversationId: once(idInput("A conversation of the room to take part in; null: the room itself.")),
  accountId: idInput("An account; null: somebody without one."),
  agentIdentifier: textInput.meta({ description: "An agent's `identifier`.", example: "support" }),
  firstName: textInput,
  lastName: textInput,
  autoJoin: z
    .boolean()
    .default(false)
    .meta({ description: "Joins each conversation of the room when it is begun." }),
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
      .meta({ description: `The agent of that identifier, where there is one. ${INSIDE}` }),
  },
  meta: { id: "Participant", description: "Who takes part in a room, or in one conversation there." },
});

export const contentInput = z.string().min(1).max(32_768).meta({ example: "Hello" });
const messageFields = {
  organizationId,
  /** That of its conversation, where it has one. */
  roomId: hidden(z.string()),
  conversationId: readOnly(text.meta({ description: "Null: said in the room itself." })),
  // Who has been handed a live token is not who has handed it over.
  authorId: orElse(
    readOnly(text.meta({ description: "Null: it came by the live token, or its account is gone." })),
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
      return room.part.nullable().meta({ description: `${INSIDE} Null to a live token.` });
    },
  },
  meta: { id: "Message", description: "What was said." },
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
  /** That of its room when it was begun. */
  spaceId: readOnly(text),
  title: titleInput,
  /** It has a live token, which is in force. */
  isLive: orElse(readOnly(z.boolean()), () => false),
  /** SHA-256 of the live token. */
  liveTokenHash: hidden(z.custom<Buffer>().nullable()),
  endedAt: hidden(time(timestamp.nullable())),
};
export const conversation = shape({
  prefix: "conv",
  fields: conversationFields,
  inside: {
    liveToken: text.meta({ description: "Told once, by `CreateLiveConversation`; else null." }),
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
  allowGuestConversations: z
    .boolean()
    .default(false)
    .meta({ description: "For clients to read: whether guests may begin conversations." }),
  allowMessages: z
    .boolean()
    .default(true)
    .meta({ description: "False: nothing is said in it, nor in its conversations." }),
  immutable: z.boolean().default(false).meta({ description: "True: it is never changed again." }),
};
export const room = shape({
  prefix: "room",
  fields: roomFields,
  inside: {
    conversations: z.array(conversation.part).meta({ description: NEWEST }).optional(),
    conversationCount: count,
    messages: z
      .array(message.entity)
      .meta({ description: `Those of its conversations among them. ${NEWEST}` })
      .optional(),
    messageCount: count,
    participants: z
      .array(participant.entity)
      .meta({ description: `Those of the room itself. ${NEWEST}` })
      .optional(),
    participantCount: count,
  },
  meta: { id: "Room", description: "Where conversations take place." },
});
