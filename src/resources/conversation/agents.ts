import { createId } from "../../lib/ids.ts";
import { ACCOUNTS, BLUEPRINTS, type Reference, SPACES } from "../kit/references.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { agent, knowledgeBase } from "./schema.ts";

const KNOWLEDGE_BASES: Reference = { table: "knowledgeBases", prefix: "kb", words: "knowledge base" };

export const agents = standardResource({
  path: "/agents",
  tag: "Agents",
  name: "agent",
  table: "agents",
  shape: agent,
  references: {
    blueprintId: BLUEPRINTS,
    spaceId: SPACES,
    serviceAccountId: ACCOUNTS,
    knowledgeBaseId: KNOWLEDGE_BASES,
  },
  taken: {
    when: "another agent has the same uid or identifier",
    message: "An agent with this uid or identifier already exists.",
  },
  notes: {
    delete: {
      description:
        "Participants with the agent's identifier are kept. They have no agent until another agent gets that identifier.",
    },
  },
  prepare: async ({ values: { querySuggestions }, nowMs }) => ({
    querySuggestions: querySuggestions.map(({ id = createId("qs", nowMs), content }) => ({ id, content })),
  }),
  async inside(db, rows) {
    const ids = rows.flatMap(({ knowledgeBaseId }) => knowledgeBaseId ?? []);
    if (ids.length === 0) return () => ({});
    const found = await db.selectFrom("knowledgeBases").selectAll().where("id", "in", ids).execute();
    const byId = new Map(found.map((row) => [row.id, knowledgeBase.render(row)]));
    return ({ knowledgeBaseId }) => ({ knowledgeBase: byId.get(knowledgeBaseId ?? "") ?? null });
  },
});
