import { sql } from "kysely";
import type { Queryable } from "../../data/database.ts";
import type { Row } from "../../data/tables.ts";
import { readNewestPerOwner } from "../kit/newest-per-owner.ts";
import { message, participant } from "./schema.ts";

type Owner = "room_id" | "conversation_id";

/** Loads the newest messages and the participants for several rooms or conversations. Returns a function that renders them for one id. */
export async function loadEmbedded(db: Queryable, owner: Owner, ids: readonly string[]) {
  const weight = sql`length(attachments::text)`;
  const parts = { table: "messages", owner, columns: sql`*`, weight };
  const messages = await readNewestPerOwner<Row<"messages">>(db, parts, ids);
  const participants = await readNewestPerOwner<Row<"participants">>(
    db,
    {
      table: "participants",
      owner,
      columns: sql`*`,
      where: owner === "room_id" ? sql`conversation_id IS NULL` : sql`true`,
    },
    ids,
  );
  return (id: string) => {
    const said = messages(id);
    const present = participants(id);
    return {
      messages: said.items.map((row) => message.render(row)),
      messageCount: said.total,
      participants: present.items.map((row) => participant.render(row)),
      participantCount: present.total,
    };
  };
}
