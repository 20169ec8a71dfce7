import { z } from "zod";
import type { Queryable } from "../../../data/database.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import { account } from "../../iam/schema.ts";
import { visibleAccounts } from "../../kit/account-scope.ts";
import { countRows } from "../../kit/list-page.ts";
import { ACCOUNTS } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { ROOMS } from "../room-scope.ts";
import { agent, participant } from "../schema.ts";

/** Maximum number of participants per room and per conversation. */
const MAX_PARTICIPANTS = 1_000;

export const participants = standardResource({
  path: "/rooms/:roomId/participants",
  tag: "Rooms",
  name: "participant",
  table: "participants",
  shape: participant,
  within: { param: "roomId", parent: ROOMS, lock: "createShared" },
  references: { accountId: ACCOUNTS },
  taken: { when: "the account is already a participant", message: "The account is already a participant." },
  filters: {
    query: {
      conversationId: z.string().optional().meta({
        description:
          "Only participants of this conversation of the room. Default: participants of the room itself.",
      }),
    },
    check: (db, _caller, { conversationId = null }, { roomId = "" }) =>
      requireConversation(db, roomId, conversationId),
    find: (db, _caller, { conversationId = null }, { roomId = "" }) => inPlace(db, roomId, conversationId),
  },
  async prepare({ trx, before, values: { roomId, conversationId } }) {
    if (before) return {};
    await requireConversation(trx, roomId, conversationId);
    if ((await countRows(inPlace(trx, roomId, conversationId))) >= MAX_PARTICIPANTS)
      throw conflict(`There are already ${MAX_PARTICIPANTS} participants, which is the maximum.`);
    return {};
  },
  async inside(db, rows, caller) {
    const accounts = await visibleAccounts(db, caller)
      .selectAll()
      .where("id", "in", rows.flatMap(({ accountId }) => accountId ?? []).concat(""))
      .execute();
    const agents = await db
      .selectFrom("agents")
      .selectAll()
      .where("organizationId", "=", caller.organizationId)
      .where("identifier", "in", rows.flatMap(({ agentIdentifier }) => agentIdentifier ?? []).concat(""))
      .execute();
    const accountsById = new Map(accounts.map((row) => [row.id, account.render(row)]));
    const agentsByName = new Map(agents.map((row) => [row.identifier, agent.render(row)]));
    return ({ accountId, agentIdentifier }) => ({
      account: accountsById.get(accountId ?? "") ?? null,
      agent: agentIdentifier === null ? null : (agentsByName.get(agentIdentifier) ?? null),
    });
  },
  notes: {
    create: {
      missing: "the room, the conversation or the account does not exist",
      conflict: `the account is already a participant, or there are already ${MAX_PARTICIPANTS} participants`,
    },
    list: { missing: "the room or the conversation does not exist" },
    get: { description: "A participant of the room itself or of any of its conversations." },
    delete: {
      description: "A participant who leaves the room stays in the conversations that it has joined.",
    },
  },
});

/**
 * Selects the participants of a conversation, or of the room itself if `conversationId` is `null`. The caller must
 * already have checked access to the room.
 */
const inPlace = (db: Queryable, roomId: string, conversationId: string | null) =>
  db
    .selectFrom("participants")
    .where("roomId", "=", roomId)
    .where("conversationId", conversationId === null ? "is" : "=", conversationId);

/** Checks that the room has the conversation. In a transaction, this also prevents its deletion. @throws ApiError 404 if not found */
async function requireConversation(db: Queryable, roomId: string, id: string | null): Promise<void> {
  if (id === null) return;
  const found = await db
    .selectFrom("conversations")
    .select("id")
    .where("id", "=", id)
    .where("roomId", "=", roomId)
    .forKeyShare()
    .executeTakeFirst();
  if (!found) throw notFound("conversation");
}
