import type {
  ConversationRow,
  KeptAttachment,
  MessageRow,
  ParticipantRow,
  RoomRow,
} from "../../data/conversation-tables.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { timesOf } from "../kit/times.ts";
import type { Attachment, Conversation, Message, Participant, Room } from "./conversation-entities.ts";

/** Rows as entities. What is not handed in stays out, as inside another entity: null and `[]`. */
export function renderRoom(
  row: RoomRow,
  parts: Partial<Pick<Room, "conversations" | "messages" | "participants">> = {},
): Room {
  const { createdAt, updatedAt, ...fields } = row;
  const { conversations = [], messages = [], participants = [] } = parts;
  return { ...fields, conversations, messages, participants, ...timesOf(row) };
}

export function renderConversation(
  row: ConversationRow,
  parts: Partial<Pick<Conversation, "liveToken" | "messages" | "participants">> = {},
): Conversation {
  const { id, authorId, organizationId, ownerId, roomId, spaceId, title, isLive } = row;
  const { liveToken = null, messages = [], participants = [] } = parts;
  return {
    ...{ id, authorId, organizationId, ownerId, roomId, spaceId, title, isLive },
    ...{ liveToken, messages, participants },
    ...timesOf(row),
  };
}

/** What of a message stands inside other entities: its attachments may be large. */
export type MessageInside = Omit<MessageRow, "attachments" | "updatedAt">;

export function renderMessage(
  row: MessageInside,
  parts: Partial<Pick<Message, "attachments" | "conversation" | "room">> = {},
): Message {
  const { id, authorId, organizationId, conversationId, content, aiRole } = row;
  const { attachments = [], conversation = null, room = null } = parts;
  return {
    ...{ id, authorId, organizationId, conversationId, content, aiRole },
    ...{ attachments, conversation, room },
    createdAt: formatTimestamp(row.createdAt.getTime()),
  };
}

export function renderParticipant(
  row: ParticipantRow,
  parts: Partial<Pick<Participant, "account" | "agent">> = {},
): Participant {
  const { organizationId, createdAt, updatedAt, ...fields } = row;
  const { account = null, agent = null } = parts;
  return { ...fields, account, agent, ...timesOf(row) };
}

const keptBytes = (bytes: readonly number[]): string => Buffer.from(bytes).toString("base64");
// Six times as fast as to spread them.
const shownBytes = (text: string): readonly number[] => Buffer.from(text, "base64").toJSON().data;

/** An attachment as it is kept, and as it is answered. */
export const keepAttachment = (attachment: Attachment): KeptAttachment => ({
  ...attachment,
  metadata: keptBytes(attachment.metadata),
  payload: keptBytes(attachment.payload),
});
export const renderAttachment = (kept: KeptAttachment): Attachment => ({
  ...kept,
  metadata: shownBytes(kept.metadata),
  payload: shownBytes(kept.payload),
});
