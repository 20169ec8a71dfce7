import type { AgentRow } from "../../../data/conversation-tables.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { applyPatch } from "../../kit/merge.ts";
import { ownedRows, type RowDeps } from "../../kit/owned-rows.ts";
import {
  BLUEPRINTS,
  ifRenamed,
  type Reference,
  requireAccount,
  requireRow,
  requireSpace,
  spaceOf,
} from "../../kit/references.ts";
import { refuseTaken } from "../../kit/refusals.ts";
import { type Agent, renderAgent, renderKnowledgeBase } from "../agent-entities.ts";
import { type AgentInput, agentInput, contentOf } from "./schema.ts";

const rows = ownedRows("agents", { prefix: "agt", words: "agent" });
const KNOWLEDGE_BASES: Reference = { table: "knowledgeBases", prefix: "kb", words: "knowledge base" };
const TAKEN = "There is an agent of that uid or identifier already.";

/** What an agent names that others may not delete while it is written. */
type Named = Pick<AgentRow, "blueprintId" | "serviceAccountId" | "knowledgeBaseId">;

export const getAgent = async ({ db }: RowDeps, caller: Caller, id: string): Promise<Agent> =>
  complete(db, await rows.get(db, caller, id));

export async function listAgents({ db }: RowDeps, caller: Caller, page: Page): Promise<Listed<Agent>> {
  const { items, total } = await rows.list(db, caller, page);
  return { items: await completeAll(db, items), total };
}

/** @throws ApiError 404 for what it names, 409 where uid or identifier are another's */
export async function createAgent(
  { db, clock }: RowDeps,
  caller: Caller,
  { uid, ...input }: AgentInput,
): Promise<Agent> {
  const created = db.transaction().execute(async (trx) => {
    await requireNamed(trx, caller, input);
    const spaceId = await spaceOf(trx, caller, input.spaceId);
    const content = { ...contentOf(input, clock()), spaceId };
    return complete(trx, await rows.insert(trx, caller, (id) => ({ ...content, uid: uid ?? id }), clock()));
  });
  return refuseTaken(TAKEN, created);
}

/** @throws ApiError 404 for the agent and what it names anew, 409 where uid or identifier are another's */
export async function updateAgent(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Agent> {
  const updated = db.transaction().execute(async (trx) => {
    const before = await rows.lock(trx, caller, id);
    const { id: _, organizationId, createdAt, updatedAt, ...written } = before;
    const was = { ...written, querySuggestions: [...written.querySuggestions] };
    const { uid = id, spaceId = null, ...input } = applyPatch(agentInput, was, patch);
    await requireNamed(trx, caller, {
      blueprintId: ifRenamed(before.blueprintId, input.blueprintId),
      serviceAccountId: ifRenamed(before.serviceAccountId, input.serviceAccountId),
      knowledgeBaseId: ifRenamed(before.knowledgeBaseId, input.knowledgeBaseId),
    });
    await requireSpace(trx, caller, ifRenamed(before.spaceId, spaceId));
    const content = { ...contentOf(input, clock()), uid, spaceId };
    return complete(trx, await rows.update(trx, caller, before, content, clock()));
  });
  return refuseTaken(TAKEN, updated);
}

export async function deleteAgent({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await rows.remove(trx, caller, await rows.lock(trx, caller, id), clock());
  });
}

async function requireNamed(trx: Trx, caller: Caller, named: Named): Promise<void> {
  await requireRow(trx, caller, BLUEPRINTS, named.blueprintId);
  await requireAccount(trx, caller, named.serviceAccountId);
  await requireRow(trx, caller, KNOWLEDGE_BASES, named.knowledgeBaseId);
}

async function complete(db: Queryable, row: AgentRow): Promise<Agent> {
  const [agent] = await completeAll(db, [row]);
  return agent ?? renderAgent(row);
}

async function completeAll(db: Queryable, agents: readonly AgentRow[]): Promise<readonly Agent[]> {
  const ids = agents.map(({ knowledgeBaseId }) => knowledgeBaseId).filter((id) => id !== null);
  if (ids.length === 0) return agents.map((row) => renderAgent(row));
  const found = await db.selectFrom("knowledgeBases").selectAll().where("id", "in", ids).execute();
  const byId = new Map(found.map((row) => [row.id, renderKnowledgeBase(row)]));
  return agents.map((row) => renderAgent(row, byId.get(row.knowledgeBaseId ?? "") ?? null));
}
