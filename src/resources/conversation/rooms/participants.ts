import { z } from "zod";
import type { Queryable } from "../../../data/database.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { account } from "../../iam/iam-entities.ts";
import { visibleAccounts } from "../../kit/account-scope.ts";
import { ACCOUNTS } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { agent } from "../agent-entities.ts";
import { participant } from "../conversation-entities.ts";
import { ROOMS } from "../room-scope.ts";

/** A room holds so many, and so does each of its conversations. */
const MAX_PARTICIPANTS = 1_000;

/** Participants of a room and of its conversations. */
export const participants = standardResource({
  path: "/rooms/:roomId/participants",
  tag: "Rooms",
  name: "participant",
  table: "participants",
  shape: participant,
  within: { param: "roomId", parent: ROOMS, lock: "createShared" },
  references: { accountId: ACCOUNTS },
  taken: { when: "the account takes part already", message: "The account takes part already." },
  filters: {
    query: {
      conversationId: z.string().optional().meta({
        description: "Those of that conversation of the room. Default: those of the room itself.",
      }),
    },
    check: (db, _caller, { conversationId = null }, { roomId = "" }) =>
      requireConversation(db, roomId, conversationId),
    find: (db, _caller, { conversationId = null }, { roomId = "" }) => inPlace(db, roomId, conversationId),
  },
  async prepare({ trx, before, values: { roomId, conversationId } }) {
    if (before) return {};
    await requireConversation(trx, roomId, conversationId);
    const { n } = await inPlace(trx, roomId, conversationId)
      .select((eb) => eb.fn.countAll<number>().as("n"))
      .executeTakeFirstOrThrow();
    if (n >= MAX_PARTICIPANTS) throw conflict(`${MAX_PARTICIPANTS} take part already.`);
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
      missing: "the room, the conversation or the account is not there",
      conflict: `the account takes part already, or ${MAX_PARTICIPANTS} do`,
    },
    list: { missing: "the room or the conversation is not there" },
    get: { description: "Of the room itself, or of any of its conversations." },
    delete: { description: "A participant of the room stays in the conversations that it has joined." },
  },
});

/** Those of a room whose organization was looked at: of the room itself, or of one of its conversations. */
const inPlace = (db: Queryable, roomId: string, conversationId: string | null) =>
  db
    .selectFrom("participants")
    .where("roomId", "=", roomId)
    .where("conversationId", conversationId === null ? "is" : "=", conversationId);

/** The room has that conversation; in a transaction nobody deletes it until that ends. @throws ApiError 404 */
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
