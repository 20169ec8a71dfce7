import { z } from "zod";
import { id, type Shown, timestamp } from "../../http/fields.ts";
import { account } from "../iam/iam-entities.ts";
import { times } from "../kit/times.ts";
import { agent } from "./agent-entities.ts";

/**
 * Rooms and what is said in them, as the API answers them. The one that is asked for is complete; those inside it carry what is
 * their own, with null and `[]` where entities would follow.
 */
const INSIDE = "Null inside another entity.";
const INSIDE_LIST = "Empty inside another entity.";
const NEWEST = "The newest, oldest first; an answer holds 1,000 of a kind, shared out evenly.";
const text = z.string().nullable();
/** An entity inside another: only what it has itself is promised; so no type goes round in a circle. */
type Inside<Scalars extends z.ZodRawShape> = z.ZodType<z.output<z.ZodObject<Scalars>>>;

const bytes = z.array(z.int().min(0).max(255));

export const attachmentSchema = z
  .object({
    name: z.string(),
    kind: text,
    contentType: text,
    metadata: bytes.meta({ description: "Bytes.", example: [] }),
    payload: bytes.meta({ description: "Bytes.", example: [104, 105] }),
  })
  .meta({ id: "Attachment", description: "Bytes that come with a message." });
export type Attachment = Shown<z.output<typeof attachmentSchema>>;

const participantScalars = {
  id: id("part"),
  accountId: text,
  conversationId: text.meta({ description: "Null: a participant of the room itself." }),
  roomId: id("room"),
  agentIdentifier: text,
  firstName: text,
  lastName: text,
  autoJoin: z.boolean().meta({ description: "Joins each conversation of the room when it is begun." }),
  isAdmin: z.boolean(),
  isAgent: z.boolean(),
  scope: z.unknown().meta({ description: "Anything, or null." }),
  status: z.unknown().meta({ description: "Anything, or null." }),
  ...times,
};

export const participantSchema = z
  .object({
    ...participantScalars,
    account: account.entity.nullable().meta({ description: INSIDE }),
    agent: agent.entity
      .nullable()
      .meta({ description: `The agent of that identifier, where there is one. ${INSIDE}` }),
  })
  .meta({ id: "Participant", description: "Who takes part in a room, or in one conversation there." });
export type Participant = Shown<z.output<typeof participantSchema>>;

const messageScalars = {
  id: id("msg"),
  authorId: text.meta({ description: "Null: whoever had the live token, or an account that is gone." }),
  organizationId: id("org"),
  conversationId: text.meta({ description: "Null: said in the room itself." }),
  content: z.string(),
  aiRole: z.int().nullable(),
  createdAt: timestamp,
};

const conversationScalars = {
  id: id("conv"),
  authorId: text,
  organizationId: id("org"),
  ownerId: text,
  roomId: id("room"),
  spaceId: text,
  title: text,
  isLive: z.boolean(),
  liveToken: text.meta({ description: "Told once, by `CreateLiveConversation`; else null." }),
  ...times,
};

const roomScalars = {
  id: id("room"),
  title: text,
  description: text,
  hash: text,
  organizationId: id("org"),
  ownerId: text,
  spaceId: text,
  allowGuestConversations: z.boolean(),
  allowMessages: z.boolean(),
  immutable: z.boolean(),
  ...times,
};

export const messageSchema = z
  .object({
    ...messageScalars,
    attachments: z.array(attachmentSchema).meta({ description: INSIDE_LIST }),
    get conversation(): z.ZodNullable<Inside<typeof conversationScalars>> {
      return conversationSchema.nullable().meta({ description: INSIDE });
    },
    get room(): z.ZodNullable<Inside<typeof roomScalars>> {
      return roomSchema.nullable().meta({ description: `${INSIDE} Null to a live token.` });
    },
  })
  .meta({ id: "Message", description: "What was said." });
export type Message = Shown<z.output<typeof messageSchema>>;

export const conversationSchema = z
  .object({
    ...conversationScalars,
    get messages(): z.ZodArray<Inside<typeof messageScalars>> {
      return z.array(messageSchema).meta({ description: NEWEST });
    },
    participants: z.array(participantSchema).meta({ description: NEWEST }),
  })
  .meta({ id: "Conversation", description: "A conversation in a room." });
export type Conversation = Shown<z.output<typeof conversationSchema>>;

export const roomSchema = z
  .object({
    ...roomScalars,
    conversations: z.array(conversationSchema).meta({ description: NEWEST }),
    get messages(): z.ZodArray<Inside<typeof messageScalars>> {
      return z.array(messageSchema).meta({ description: `Those of its conversations among them. ${NEWEST}` });
    },
    participants: z.array(participantSchema).meta({ description: `Those of the room itself. ${NEWEST}` }),
  })
  .meta({ id: "Room", description: "Where conversations take place." });
export type Room = Shown<z.output<typeof roomSchema>>;
