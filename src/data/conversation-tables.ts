import type { ColumnType, Selectable } from "kysely";
import type { Json, Timestamps } from "./columns.ts";

/** Any JSON, or SQL's null for none. */
type FreeForm = ColumnType<unknown, string | null, string | null>;

export interface RoomsTable extends Timestamps {
  id: string;
  organizationId: string;
  title: string | null;
  description: string | null;
  hash: string | null;
  ownerId: string | null;
  spaceId: string | null;
  allowGuestConversations: boolean;
  allowMessages: boolean;
  immutable: boolean;
}

export interface ConversationsTable extends Timestamps {
  id: string;
  organizationId: string;
  roomId: string;
  authorId: string | null;
  ownerId: string | null;
  spaceId: string | null;
  title: string | null;
  /** It has a live token, which is in force. */
  isLive: boolean;
  /** SHA-256 of the live token. */
  liveTokenHash: Buffer | null;
  endedAt: ColumnType<Date | null, Date | null, Date | null>;
}

export interface ParticipantsTable extends Timestamps {
  id: string;
  organizationId: string;
  roomId: string;
  /** Null: of the room itself. */
  conversationId: string | null;
  accountId: string | null;
  agentIdentifier: string | null;
  firstName: string | null;
  lastName: string | null;
  autoJoin: boolean;
  isAdmin: boolean;
  isAgent: boolean;
  scope: FreeForm;
  status: FreeForm;
}

/** An attachment as it is kept: bytes in Base64. */
export interface KeptAttachment {
  readonly name: string;
  readonly kind: string | null;
  readonly contentType: string | null;
  readonly metadata: string;
  readonly payload: string;
}

export interface MessagesTable extends Timestamps {
  id: string;
  organizationId: string;
  /** That of its conversation, where it has one. */
  roomId: string;
  /** Null: said in the room itself. */
  conversationId: string | null;
  /** Null: whoever had the conversation's live token, or an account that is gone. */
  authorId: string | null;
  content: string;
  aiRole: number | null;
  attachments: Json<readonly KeptAttachment[]>;
}

export type RoomRow = Selectable<RoomsTable>;
export type ConversationRow = Selectable<ConversationsTable>;
export type ParticipantRow = Selectable<ParticipantsTable>;
export type MessageRow = Selectable<MessagesTable>;
