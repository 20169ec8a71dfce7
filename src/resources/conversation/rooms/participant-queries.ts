import type { ParticipantRow } from "../../../data/conversation-tables.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { account } from "../../iam/iam-entities.ts";
import { visibleAccounts } from "../../kit/account-scope.ts";
import { listPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import { ifRenamed, requireAccount } from "../../kit/references.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import { agent } from "../agent-entities.ts";
import type { Participant } from "../conversation-entities.ts";
import { renderParticipant } from "../conversation-render.ts";
import { lockRoom } from "../messages.ts";
import { contentOf, type ParticipantInput, participantContent } from "./participant-schema.ts";
import { rows as rooms } from "./queries.ts";

/** A room holds so many, and so does each of its conversations. */
export const MAX_PARTICIPANTS = 1_000;
const TAKEN = "The account takes part already.";

const rows = ownedRows("participants", { prefix: "part", words: "participant" });

/** Those of the room itself, or of one of its conversations. @throws ApiError 404 */
export async function listParticipants(
  { db }: RowDeps,
  caller: Caller,
  place: Place,
  page: Page,
): Promise<Listed<Participant>> {
  await rooms.get(db, caller, place.roomId);
  await requireConversation(db, place);
  const { items, total } = await listPage(inPlace(db, place).selectAll(), page);
  return { items: await completeAll(db, caller, items), total };
}

/** @throws ApiError 404 */
export async function getParticipant(
  { db }: RowDeps,
  caller: Caller,
  roomId: string,
  id: string,
): Promise<Participant> {
  return complete(db, caller, ofRoom(await rows.get(db, caller, id), roomId));
}

/** @throws ApiError 404 for room, conversation and account, 409 where the account takes part, or there is no more room */
export async function createParticipant(
  { db, clock }: RowDeps,
  caller: Caller,
  roomId: string,
  { conversationId, ...input }: ParticipantInput,
): Promise<Participant> {
  const created = db.transaction().execute(async (trx) => {
    const place = { roomId, conversationId };
    await lockRoom(trx, caller, roomId);
    await requireConversation(trx, place);
    await requireAccount(trx, caller, input.accountId);
    await requireFreePlace(trx, place);
    return complete(trx, caller, await rows.insert(trx, caller, { ...contentOf(input), ...place }, clock()));
  });
  return refuseTaken(TAKEN, created);
}

/** @throws ApiError 404 for the participant and its account, 409 where the account takes part */
export async function updateParticipant(
  { db, clock }: RowDeps,
  caller: Caller,
  roomId: string,
  id: string,
  patch: object,
): Promise<Participant> {
  const updated = db.transaction().execute(async (trx) => {
    const before = ofRoom(await rows.lock(trx, caller, id), roomId);
    const { id: _, organizationId, roomId: __, conversationId, createdAt, updatedAt, ...written } = before;
    const after = applyPatch(participantContent, written, patch);
    await requireAccount(trx, caller, ifRenamed(before.accountId, after.accountId));
    return complete(trx, caller, await rows.update(trx, caller, before, contentOf(after), clock()));
  });
  return refuseTaken(TAKEN, updated);
}

/** @throws ApiError 404 */
export async function deleteParticipant(
  { db, clock }: RowDeps,
  caller: Caller,
  roomId: string,
  id: string,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, ofRoom(await rows.lock(trx, caller, id), roomId), clock());
  });
}

interface Place {
  readonly roomId: string;
  /** Null: the room itself. */
  readonly conversationId: string | null;
}

/** Of rooms and conversations whose organization was looked at. */
const inPlace = (db: Queryable, { roomId, conversationId }: Place) =>
  db
    .selectFrom("participants")
    .where("roomId", "=", roomId)
    .where("conversationId", conversationId === null ? "is" : "=", conversationId);

function ofRoom(row: ParticipantRow, roomId: string): ParticipantRow {
  if (row.roomId !== roomId) throw notFound("participant");
  return row;
}

/** The room has that conversation; in a transaction nobody deletes it until that ends. @throws ApiError 404 */
async function requireConversation(db: Queryable, { roomId, conversationId }: Place): Promise<void> {
  if (conversationId === null) return;
  const found = await db
    .selectFrom("conversations")
    .select("id")
    .where("id", "=", conversationId)
    .where("roomId", "=", roomId)
    .forKeyShare()
    .executeTakeFirst();
  if (!found) throw notFound("conversation");
}

async function requireFreePlace(trx: Trx, place: Place): Promise<void> {
  const { n } = await inPlace(trx, place)
    .select((eb) => eb.fn.countAll<number>().as("n"))
    .executeTakeFirstOrThrow();
  if (n >= MAX_PARTICIPANTS) throw conflict(`${MAX_PARTICIPANTS} take part already.`);
}

async function complete(db: Queryable, caller: Caller, row: ParticipantRow): Promise<Participant> {
  const [participant] = await completeAll(db, caller, [row]);
  return participant ?? renderParticipant(row);
}

async function completeAll(
  db: Queryable,
  caller: Caller,
  participants: readonly ParticipantRow[],
): Promise<readonly Participant[]> {
  const accountIds = participants.flatMap(({ accountId }) => accountId ?? []);
  const identifiers = participants.flatMap(({ agentIdentifier }) => agentIdentifier ?? []);
  const accounts = await visibleAccounts(db, caller)
    .selectAll()
    .where("id", "in", accountIds.concat(""))
    .execute();
  const agents = await db
    .selectFrom("agents")
    .selectAll()
    .where("organizationId", "=", caller.organizationId)
    .where("identifier", "in", identifiers.concat(""))
    .execute();
  const accountsById = new Map(accounts.map((row) => [row.id, account.render(row)]));
  const agentsByName = new Map(agents.map((row) => [row.identifier, agent.render(row)]));
  return participants.map((row) =>
    renderParticipant(row, {
      account: accountsById.get(row.accountId ?? "") ?? null,
      agent: row.agentIdentifier === null ? null : (agentsByName.get(row.agentIdentifier) ?? null),
    }),
  );
}
