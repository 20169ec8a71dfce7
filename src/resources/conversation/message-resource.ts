import type { Queryable } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conversation, message, room } from "./schema.ts";

/** Settings shared by the messages of rooms and the messages of conversations. */
export const messageResource = {
  words: "message",
  table: "messages",
  shape: message,
  datedBy: "database",
  async inside(db: Queryable, rows: readonly Row<"messages">[], caller: Caller) {
    // Omit the rooms for a guest token, because the token gives access to a single conversation only.
    const roomIds = caller.confinedTo ? [] : rows.map(({ roomId }) => roomId);
    const conversationIds = rows.flatMap(({ conversationId }) => conversationId ?? []);
    const rooms = await db.selectFrom("rooms").selectAll().where("id", "in", roomIds.concat("")).execute();
    const conversations = await db
      .selectFrom("conversations")
      .selectAll()
      .where("id", "in", conversationIds.concat(""))
      .execute();
    const roomsById = new Map(rooms.map((row) => [row.id, room.render(row)]));
    const conversationsById = new Map(conversations.map((row) => [row.id, conversation.render(row)]));
    return ({ conversationId, roomId }: Row<"messages">) => ({
      conversation: conversationsById.get(conversationId ?? "") ?? null,
      room: roomsById.get(roomId) ?? null,
    });
  },
} as const;
