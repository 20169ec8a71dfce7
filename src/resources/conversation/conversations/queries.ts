import type { ConversationRow } from "../../../data/conversation-tables.ts";
import type { Queryable } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict } from "../../../http/problem.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { ifRenamed, requireAccount } from "../../kit/references.ts";
import type { Conversation, Message } from "../conversation-entities.ts";
import { renderConversation } from "../conversation-render.ts";
import type { MessageInput } from "../message-schema.ts";
import {
  completeMessage,
  insertMessage,
  lockRoom,
  messagesInside,
  requireMessagesAllowed,
} from "../messages.ts";
import { participantsInside } from "../participants-inside.ts";
import { conversationContent } from "./schema.ts";

export const rows = ownedRows("conversations", { prefix: "conv", words: "conversation" });

export const getConversation = async ({ db }: RowDeps, caller: Caller, id: string): Promise<Conversation> =>
  completeConversation(db, await rows.get(db, caller, id));

export async function listConversations(
  { db }: RowDeps,
  caller: Caller,
  page: Page,
): Promise<Listed<Conversation>> {
  const { items, total } = await rows.list(db, caller, page);
  return { items: await completeAll(db, items), total };
}

/** @throws ApiError 404 for the conversation and its owner */
export async function updateConversation(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Conversation> {
  return db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const { title, ownerId: owner } = before;
    const after = applyPatch(conversationContent, { title, ownerId: owner }, patch);
    const ownerId = after.ownerId ?? null;
    await requireAccount(trx, caller, ifRenamed(owner, ownerId));
    const row = await rows.update(trx, caller, before, { title: after.title, ownerId }, clock());
    return completeConversation(trx, row);
  });
}

/** Nothing more is said in it, and its live token is none any more. @throws ApiError 404, 409 where it has ended */
export async function endConversation(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
): Promise<Conversation> {
  return db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    requireGoingOn(before);
    const end = { isLive: false, liveTokenHash: null, endedAt: new Date(clock()) };
    return completeConversation(trx, await rows.update(trx, caller, before, end, clock()));
  });
}

/** With all that was said in it. @throws ApiError 404 */
export async function deleteConversation({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
}

/** @throws ApiError 404, 409 where it has ended or its room takes no messages */
export async function sayInConversation(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  input: MessageInput,
): Promise<Message> {
  return db.transaction().execute(async (trx) => {
    const conversation = await rows.lockShared(trx, caller, id);
    requireGoingOn(conversation);
    const { roomId } = conversation;
    requireMessagesAllowed(await lockRoom(trx, caller, roomId));
    const row = await insertMessage(trx, caller, { roomId, conversationId: id }, input, clock());
    return completeMessage(trx, caller, row);
  });
}

export async function completeConversation(db: Queryable, row: ConversationRow): Promise<Conversation> {
  const [conversation] = await completeAll(db, [row]);
  return conversation ?? renderConversation(row);
}

function requireGoingOn({ endedAt }: ConversationRow): void {
  if (endedAt !== null) throw conflict("The conversation has ended.");
}

async function completeAll(
  db: Queryable,
  conversations: readonly ConversationRow[],
): Promise<readonly Conversation[]> {
  const ids = conversations.map(({ id }) => id);
  const messages = await messagesInside(db, "conversation_id", ids);
  const participants = await participantsInside(db, "conversation_id", ids);
  return conversations.map((row) =>
    renderConversation(row, {
      messages: messages.get(row.id) ?? [],
      participants: participants.get(row.id) ?? [],
    }),
  );
}
