import { sql } from "kysely";
import type { MessageRow, RoomRow } from "../../data/conversation-tables.ts";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Caller } from "../../http/context.ts";
import type { Listed, Page } from "../../http/page.ts";
import { conflict, notFound } from "../../http/problem.ts";
import { createId, isId } from "../../lib/ids.ts";
import { listPage } from "../kit/list-page.ts";
import { applyPatch } from "../kit/merge.ts";
import { newestInside } from "../kit/newest-inside.ts";
import type { RowDeps } from "../kit/owned-rows.ts";
import type { Message } from "./conversation-entities.ts";
import {
  keepAttachment,
  type MessageInside,
  renderAttachment,
  renderConversation,
  renderMessage,
  renderRoom,
} from "./conversation-render.ts";
import { type MessageInput, messageInput } from "./message-schema.ts";

/** Where messages are looked for: in a room with all its conversations, or in one conversation. */
export interface MessagePlace {
  readonly column: "roomId" | "conversationId";
  readonly id: string;
}

/** Where one is said. */
export interface NewMessagePlace {
  readonly roomId: string;
  /** Null: in the room itself. */
  readonly conversationId: string | null;
}

export async function listMessages(
  db: Queryable,
  caller: Caller,
  place: MessagePlace,
  page: Page,
): Promise<Listed<Message>> {
  const { items, total } = await listPage(inPlace(db, caller, place).selectAll(), page);
  return { items: await completeAll(db, caller, items), total };
}

/** @throws ApiError 404 */
export async function getMessage(
  db: Queryable,
  caller: Caller,
  place: MessagePlace,
  id: string,
): Promise<Message> {
  const row = await inPlace(db, caller, place).selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw notFound("message");
  return completeMessage(db, caller, row);
}

/** Says something in a room that allows it: see `requireMessagesAllowed`. */
export async function insertMessage(
  trx: Trx,
  caller: Caller,
  place: NewMessagePlace,
  { content, aiRole, attachments }: MessageInput,
  nowMs: number,
): Promise<MessageRow> {
  // Not by this gateway's clock, which is not the others'.
  const now = sql<Date>`clock_timestamp()`;
  return trx
    .insertInto("messages")
    .values({
      id: createId("msg", nowMs),
      organizationId: caller.organizationId,
      ...place,
      // Who has been handed a live token is not who has handed it over.
      authorId: caller.by === "liveToken" ? null : caller.accountId,
      ...{ content, aiRole, attachments: JSON.stringify(attachments.map(keepAttachment)) },
      ...{ createdAt: now, updatedAt: now },
    })
    .returningAll()
    .executeTakeFirstOrThrow();
}

/** @throws ApiError 404 */
export async function updateMessage(
  { db, clock }: RowDeps,
  caller: Caller,
  place: MessagePlace,
  id: string,
  patch: object,
): Promise<Message> {
  return db.transaction().execute(async (trx) => {
    const { content, aiRole, attachments } = await lockMessage(trx, caller, place, id);
    const before = { content, aiRole, attachments: attachments.map(renderAttachment) };
    const after = applyPatch(messageInput, before, patch);
    const kept = JSON.stringify(after.attachments.map(keepAttachment));
    const row = await trx
      .updateTable("messages")
      .set({ ...after, attachments: kept, updatedAt: new Date(clock()) })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    return completeMessage(trx, caller, row);
  });
}

/** @throws ApiError 404 */
export async function deleteMessage(
  { db }: RowDeps,
  caller: Caller,
  place: MessagePlace,
  id: string,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockMessage(trx, caller, place, id);
    await trx.deleteFrom("messages").where("id", "=", id).execute();
  });
}

/** What of a room decides about what is begun and said in it. */
export type LockedRoom = Pick<RoomRow, "id" | "spaceId" | "allowMessages">;

/** The room as it stays until the transaction ends. @throws ApiError 404 */
export async function lockRoom(trx: Trx, { organizationId }: Caller, id: string): Promise<LockedRoom> {
  const room = isId("room", id)
    ? await trx
        .selectFrom("rooms")
        .select(["id", "spaceId", "allowMessages"])
        .where("id", "=", id)
        .where("organizationId", "=", organizationId)
        .forShare()
        .executeTakeFirst()
    : undefined;
  if (!room) throw notFound("room");
  return room;
}

/** @throws ApiError 409 */
export function requireMessagesAllowed({ allowMessages }: LockedRoom): void {
  if (!allowMessages) throw conflict("The room takes no messages.");
}

/** The newest messages of each room or conversation, without what comes with them. */
export async function messagesInside(
  db: Queryable,
  owner: "room_id" | "conversation_id",
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly Message[]>> {
  const columns = sql`id, organization_id, room_id, conversation_id, author_id, content, ai_role, created_at`;
  const rows = await newestInside<MessageInside>(db, { table: "messages", owner, columns }, ids);
  return new Map([...rows].map(([id, some]) => [id, some.map((row) => renderMessage(row))]));
}

export async function completeMessage(db: Queryable, caller: Caller, row: MessageRow): Promise<Message> {
  const [message] = await completeAll(db, caller, [row]);
  return message ?? renderMessage(row);
}

const inPlace = (db: Queryable, { organizationId }: Caller, { column, id }: MessagePlace) =>
  db.selectFrom("messages").where(column, "=", id).where("organizationId", "=", organizationId);

async function lockMessage(trx: Trx, caller: Caller, place: MessagePlace, id: string): Promise<MessageRow> {
  const row = await inPlace(trx, caller, place)
    .selectAll()
    .where("id", "=", id)
    .forUpdate()
    .executeTakeFirst();
  if (!row) throw notFound("message");
  return row;
}

/** A live token is good for its conversation, not for the room that this takes place in. */
async function completeAll(
  db: Queryable,
  caller: Caller,
  rows: readonly MessageRow[],
): Promise<readonly Message[]> {
  const roomIds = caller.confinedTo ? [] : [...new Set(rows.map(({ roomId }) => roomId))];
  const conversationIds = [...new Set(rows.flatMap(({ conversationId }) => conversationId ?? []))];
  const rooms = await db.selectFrom("rooms").selectAll().where("id", "in", roomIds.concat("")).execute();
  const conversations = await db
    .selectFrom("conversations")
    .selectAll()
    .where("id", "in", conversationIds.concat(""))
    .execute();
  const roomsById = new Map(rooms.map((row) => [row.id, renderRoom(row)]));
  const conversationsById = new Map(conversations.map((row) => [row.id, renderConversation(row)]));
  return rows.map((row) =>
    renderMessage(row, {
      attachments: row.attachments.map(renderAttachment),
      conversation: conversationsById.get(row.conversationId ?? "") ?? null,
      room: roomsById.get(row.roomId) ?? null,
    }),
  );
}
