import { sql } from "kysely";
import type { ConversationRow, RoomRow } from "../../../data/conversation-tables.ts";
import type { Queryable } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict } from "../../../http/problem.ts";
import { applyPatch } from "../../kit/merge.ts";
import { newestInside } from "../../kit/newest-inside.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { ifRenamed, requireAccount, requireSpace, spaceOf } from "../../kit/references.ts";
import { refuseInUse } from "../../kit/refusals.ts";
import type { Message, Room } from "../conversation-entities.ts";
import { renderConversation, renderRoom } from "../conversation-render.ts";
import type { MessageInput } from "../message-schema.ts";
import {
  completeMessage,
  insertMessage,
  lockRoom,
  messagesInside,
  requireMessagesAllowed,
} from "../messages.ts";
import { participantsInside } from "../participants-inside.ts";
import { type RoomInput, roomInput } from "./schema.ts";

export const rows = ownedRows("rooms", { prefix: "room", words: "room" });

export const getRoom = async ({ db }: RowDeps, caller: Caller, id: string): Promise<Room> =>
  complete(db, await rows.get(db, caller, id));

export async function listRooms({ db }: RowDeps, caller: Caller, page: Page): Promise<Listed<Room>> {
  const { items, total } = await rows.list(db, caller, page);
  return { items: await completeAll(db, items), total };
}

/** @throws ApiError 404 for owner and space */
export async function createRoom(
  { db, clock }: RowDeps,
  caller: Caller,
  { ownerId = caller.accountId, ...input }: RoomInput,
): Promise<Room> {
  return db.transaction().execute(async (trx) => {
    await requireAccount(trx, caller, ownerId);
    const spaceId = await spaceOf(trx, caller, input.spaceId);
    return renderRoom(await rows.insert(trx, caller, { ...input, ownerId, spaceId }, clock()));
  });
}

/** @throws ApiError 404 for the room, its owner and its space, 409 where it is immutable */
export async function updateRoom(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Room> {
  return db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const { id: _, organizationId, createdAt, updatedAt, ...written } = before;
    const { ownerId = null, spaceId = null, ...input } = applyPatch(roomInput, written, patch);
    await requireAccount(trx, caller, ifRenamed(before.ownerId, ownerId));
    await requireSpace(trx, caller, ifRenamed(before.spaceId, spaceId));
    if (before.immutable) throw conflict("The room is immutable.");
    return complete(trx, await rows.update(trx, caller, before, { ...input, ownerId, spaceId }, clock()));
  });
}

/** What was said in it and who took part go with it. @throws ApiError 404, 409 while it has conversations */
export async function deleteRoom({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  const deleted = db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
  await refuseInUse("The room has conversations.", deleted);
}

/** Says something in the room itself. @throws ApiError 404, 409 where it takes no messages */
export async function sayInRoom(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  input: MessageInput,
): Promise<Message> {
  return db.transaction().execute(async (trx) => {
    requireMessagesAllowed(await lockRoom(trx, caller, id));
    const row = await insertMessage(trx, caller, { roomId: id, conversationId: null }, input, clock());
    return completeMessage(trx, caller, row);
  });
}

async function complete(db: Queryable, row: RoomRow): Promise<Room> {
  const [room] = await completeAll(db, [row]);
  return room ?? renderRoom(row);
}

async function completeAll(db: Queryable, rooms: readonly RoomRow[]): Promise<readonly Room[]> {
  const ids = rooms.map(({ id }) => id);
  const parts = { table: "conversations", owner: "room_id", columns: sql`*` };
  const conversations = await newestInside<ConversationRow>(db, parts, ids);
  const messages = await messagesInside(db, "room_id", ids);
  const participants = await participantsInside(db, "room_id", ids);
  return rooms.map((row) =>
    renderRoom(row, {
      conversations: (conversations.get(row.id) ?? []).map((one) => renderConversation(one)),
      messages: messages.get(row.id) ?? [],
      participants: participants.get(row.id) ?? [],
    }),
  );
}
