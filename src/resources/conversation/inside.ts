import { sql } from "kysely";
import type { Queryable } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import { newestInside } from "../kit/newest-inside.ts";
import { message, participant } from "./conversation-entities.ts";

type Owner = "room_id" | "conversation_id";

/** The newest messages and participants of each room or conversation, as its answer holds them. */
export async function insideOf(db: Queryable, owner: Owner, ids: readonly string[]) {
  // Without attachments, which may be large.
  const columns = sql`id, organization_id, conversation_id, author_id, content, ai_role, created_at`;
  type MessageInside = Omit<Row<"messages">, "attachments">;
  const messages = await newestInside<MessageInside>(db, { table: "messages", owner, columns }, ids);
  const participants = await newestInside<Row<"participants">>(
    db,
    {
      table: "participants",
      owner,
      columns: sql`*`,
      where: owner === "room_id" ? sql`conversation_id IS NULL` : sql`true`,
    },
    ids,
  );
  return (id: string) => ({
    messages: (messages.get(id) ?? []).map((row) => message.render(row)),
    participants: (participants.get(id) ?? []).map((row) => participant.render(row)),
  });
}
