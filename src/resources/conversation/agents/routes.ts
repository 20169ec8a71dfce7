import { createId } from "../../../lib/ids.ts";
import { ACCOUNTS, BLUEPRINTS, type Reference, SPACES } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { agent, knowledgeBase } from "../agent-entities.ts";

const KNOWLEDGE_BASES: Reference = { table: "knowledgeBases", prefix: "kb", words: "knowledge base" };

/** Agents: who takes part in conversations without being a person. */
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
    when: "another agent has the uid or the identifier",
    message: "There is an agent of that uid or identifier already.",
  },
  notes: {
    delete: {
      description:
        "Participants that name it by its identifier stay, and are nobody's until an agent has that identifier again.",
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
