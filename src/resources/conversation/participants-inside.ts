import { sql } from "kysely";
import type { ParticipantRow } from "../../data/conversation-tables.ts";
import type { Queryable } from "../../data/database.ts";
import { newestInside } from "../kit/newest-inside.ts";
import type { Participant } from "./conversation-entities.ts";
import { renderParticipant } from "./conversation-render.ts";

/** The participants of each room itself, or of each conversation. */
export async function participantsInside(
  db: Queryable,
  owner: "room_id" | "conversation_id",
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly Participant[]>> {
  const where = owner === "room_id" ? sql`conversation_id IS NULL` : sql`true`;
  const parts = { table: "participants", owner, columns: sql`*`, where };
  const rows = await newestInside<ParticipantRow>(db, parts, ids);
  return new Map([...rows].map(([id, some]) => [id, some.map((row) => renderParticipant(row))]));
}
