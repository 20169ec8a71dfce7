import { z } from "zod";
import { hashOfToken } from "../../../data/accounts/api-keys.ts";
import { createLiveToken } from "../../../data/accounts/live-tokens.ts";
import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import { conflict } from "../../../http/errors.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { createId } from "../../../lib/ids.ts";
import { toJsonColumn } from "../../kit/free-form.ts";
import { ACCOUNTS } from "../../kit/references.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { loadEmbedded } from "../load-embedded.ts";
import { lockOpenRoom, lockRoom } from "../room-scope.ts";
import { contentInput, conversation, roomIdInput, titleInput } from "../schema.ts";

/** Routes of conversations. A live conversation has a token that lets guests without an account read it and post messages. */
export const conversations = standardResource({
  path: "/conversations",
  tag: "Conversations",
  name: "conversation",
  table: "conversations",
  shape: conversation,
  references: { ownerId: ACCOUNTS },
  async prepare({ trx, caller, before, values: { roomId } }) {
    return before ? {} : { spaceId: (await lockRoom(trx, caller, roomId)).spaceId };
  },
  async afterWrite({ trx, caller, deps, before, row, nowMs }) {
    if (before) return;
    const joining = await findJoining(trx, row);
    const inside = { table: "rooms", column: "roomId" };
    await deps.requireRoom(
      trx,
      caller,
      { table: "participants", words: "participants", inside },
      joining.length,
    );
    await join(trx, row, joining, nowMs);
  },
  async inside(db, rows) {
    const inside = await loadEmbedded(
      db,
      "conversation_id",
      rows.map(({ id }) => id),
    );
    return ({ id }) => inside(id);
  },
  notes: {
    create: {
      description:
        "The conversation is not live and belongs to the room's space. The room's participants with `autoJoin` join.",
      missing: "the room or the owner does not exist",
    },
    get: { confined: "conversationId" },
    delete: { description: "Its messages are deleted too, and its live token becomes invalid." },
  },
  more: ({ db, requireRoom }, { answer, insert, change }) => [
    defineRoute({
      at: "POST /conversations/CreateLiveConversation",
      operation: "createLiveConversation",
      summary: "Start a live conversation",
      description:
        "Only this response contains the `liveToken`. The token can read the conversation and its messages and post messages. It has no other access. It becomes invalid when the conversation ends or is deleted, or when the account that started it is disabled or deleted. Messages sent with it have no author. The room's participants with `autoJoin` join. `message` is the first message, with the caller as author. The request is atomic.",
      body: z.strictObject({
        roomId: roomIdInput,
        message: contentInput
          .nullable()
          .default(null)
          .meta({ description: "The first message. Its author is the caller." }),
        title: titleInput,
      }),
      answer: conversation.entity,
      creates: true,
      missing: "the room does not exist",
      conflict: `the room accepts no messages (\`allowMessages\` is false); or ${ROW_LIMIT_CONFLICT}`,
      handle: ({ caller, body: { message, ...body } }) =>
        db.transaction().execute(async (trx) => {
          await lockOpenRoom(trx, caller, body.roomId);
          const liveToken = createLiveToken();
          const live = { isLive: true, liveTokenHash: hashOfToken(liveToken) };
          const row = await insert(trx, caller, {}, { ...body, ...live });
          if (message !== null) {
            const inside = { table: "conversations", column: "conversationId" };
            await requireRoom(trx, caller, { table: "messages", words: "messages", inside });
            await say(trx, row, message);
          }
          return { ...(await answer(trx, caller, row)), liveToken };
        }),
    }),
    defineRoute({
      at: "POST /conversations/:conversationId/end",
      operation: "endConversation",
      summary: "End a conversation",
      description:
        "The conversation accepts no more messages. It is no longer live, and its live token is invalid at once.",
      body: z.strictObject({}),
      answer: conversation.entity,
      conflict: "the conversation has already ended",
      handle: ({ caller, params }) =>
        change(caller, params.conversationId, ({ before, nowMs }) => {
          requireGoingOn(before);
          return { isLive: false, liveTokenHash: null, endedAt: formatTimestamp(nowMs) };
        }),
    }),
  ],
});

/** @throws ApiError 409 if the conversation has ended */
export function requireGoingOn({ endedAt }: Pick<Row<"conversations">, "endedAt">): void {
  if (endedAt !== null) throw conflict("The conversation has ended.");
}

/** Inserts the first message of a conversation. The conversation's author is also the author of this message. */
async function say(trx: Trx, begun: Row<"conversations">, content: string): Promise<void> {
  const { id: conversationId, organizationId, roomId, authorId, createdAt, updatedAt } = begun;
  const message = { organizationId, roomId, conversationId, authorId, content, aiRole: null };
  const id = createId("msg", createdAt.getTime());
  await trx
    .insertInto("messages")
    .values({ id, ...message, attachments: "[]", createdAt, updatedAt })
    .execute();
}

/** Returns the room's participants with `autoJoin`. */
async function findJoining(
  trx: Trx,
  { roomId }: Row<"conversations">,
): Promise<readonly Row<"participants">[]> {
  const joining = await trx
    .selectFrom("participants")
    .selectAll()
    .where("roomId", "=", roomId)
    .where("conversationId", "is", null)
    .where("autoJoin", "=", true)
    .orderBy("createdAt")
    .orderBy("id")
    .execute();
  // Locks the accounts, so that none is deleted before the participants are written. Already deleted accounts are skipped.
  const there = await trx
    .selectFrom("accounts")
    .select("id")
    .where("id", "in", joining.map(({ accountId }) => accountId ?? "").concat(""))
    .forKeyShare()
    .execute();
  const ids = new Set(there.map(({ id }) => id));
  return joining.filter(({ accountId }) => accountId === null || ids.has(accountId));
}

/** Copies participants of the room into the conversation. `joining` lists the participants to copy. */
async function join(
  trx: Trx,
  { id: conversationId }: Row<"conversations">,
  joining: readonly Row<"participants">[],
  nowMs: number,
): Promise<void> {
  if (joining.length === 0) return;
  const times = { createdAt: new Date(nowMs), updatedAt: new Date(nowMs) };
  const copies = joining.map(({ scope, status, ...participant }) => ({
    ...participant,
    scope: toJsonColumn(scope),
    status: toJsonColumn(status),
    id: createId("part", nowMs),
    conversationId,
    ...times,
  }));
  await trx.insertInto("participants").values(copies).execute();
}
