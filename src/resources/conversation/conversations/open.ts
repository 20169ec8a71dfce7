import { hashOfToken } from "../../../data/accounts/api-keys.ts";
import { createLiveToken } from "../../../data/accounts/live-tokens.ts";
import type { ConversationRow } from "../../../data/conversation-tables.ts";
import type { Trx } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import { createId } from "../../../lib/ids.ts";
import { freeFormText } from "../../kit/free-form.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { requireAccount } from "../../kit/references.ts";
import type { Conversation } from "../conversation-entities.ts";
import { insertMessage, lockRoom, requireMessagesAllowed } from "../messages.ts";
import { completeConversation, rows } from "./queries.ts";
import type { ConversationInput, LiveConversationInput } from "./schema.ts";

/** @throws ApiError 404 for room and owner */
export async function createConversation(
  { db, clock }: RowDeps,
  caller: Caller,
  { roomId, title, ownerId = caller.accountId }: ConversationInput,
): Promise<Conversation> {
  return db.transaction().execute(async (trx) => {
    const { spaceId } = await lockRoom(trx, caller, roomId);
    await requireAccount(trx, caller, ownerId);
    const authorId = caller.accountId;
    const content = { roomId, title, ownerId, authorId, spaceId };
    const still = { isLive: false, liveTokenHash: null, endedAt: null };
    const row = await rows.insert(trx, caller, { ...content, ...still }, clock());
    await join(trx, row, clock());
    return completeConversation(trx, row);
  });
}

/**
 * Begins a conversation that whoever has its token takes part in. Only the token's hash is kept.
 *
 * @throws ApiError 404 for the room, 409 where it takes no messages
 */
export async function createLiveConversation(
  { db, clock }: RowDeps,
  caller: Caller,
  { roomId, title, message }: LiveConversationInput,
): Promise<Conversation> {
  return db.transaction().execute(async (trx) => {
    const room = await lockRoom(trx, caller, roomId);
    requireMessagesAllowed(room);
    const liveToken = createLiveToken();
    const { accountId: authorId } = caller;
    const content = { roomId, title, authorId, ownerId: authorId, spaceId: room.spaceId };
    const live = { isLive: true, liveTokenHash: hashOfToken(liveToken), endedAt: null };
    const row = await rows.insert(trx, caller, { ...content, ...live }, clock());
    await join(trx, row, clock());
    if (message !== null) {
      const place = { roomId, conversationId: row.id };
      await insertMessage(trx, caller, place, { content: message, aiRole: null, attachments: [] }, clock());
    }
    return { ...(await completeConversation(trx, row)), liveToken };
  });
}

/** The room's participants that join by themselves take part in the conversation. */
async function join(trx: Trx, { id: conversationId, roomId }: ConversationRow, nowMs: number): Promise<void> {
  const joining = await trx
    .selectFrom("participants")
    .selectAll()
    .where("roomId", "=", roomId)
    .where("conversationId", "is", null)
    .where("autoJoin", "=", true)
    .orderBy("createdAt")
    .orderBy("id")
    .execute();
  // Who is being deleted has left the room by the time that this is written.
  const there = await trx
    .selectFrom("accounts")
    .select("id")
    .where("id", "in", joining.map(({ accountId }) => accountId ?? "").concat(""))
    .forKeyShare()
    .execute();
  const ids = new Set(there.map(({ id }) => id));
  const staying = joining.filter(({ accountId }) => accountId === null || ids.has(accountId));
  if (staying.length === 0) return;
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  await trx
    .insertInto("participants")
    .values(
      staying.map(({ scope, status, ...participant }) => ({
        ...participant,
        ...{ scope: freeFormText(scope), status: freeFormText(status) },
        ...{ id: createId("part", nowMs), conversationId },
        ...times,
      })),
    )
    .execute();
}
