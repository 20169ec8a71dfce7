import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { agentSchema } from "../agent-entities.ts";
import { createAgent, deleteAgent, getAgent, listAgents, updateAgent } from "./queries.ts";
import { agentInput, agentPatch } from "./schema.ts";

const agent = standardRoutes({ name: "agent", prefix: "agt", entity: agentSchema });
const conflict = "another agent has the uid or the identifier";

/** Agents: who takes part in conversations without being a person. */
export const agents: Resource<RowDeps> = {
  path: "/agents",
  tag: "Agents",
  routes: (deps) => [
    agent.create(
      {
        body: agentInput,
        missing: "the blueprint, the space, the service account or the knowledge base is not there",
        conflict,
      },
      ({ caller, body }) => createAgent(deps, caller, body),
    ),
    agent.list(({ caller, page }) => listAgents(deps, caller, page)),
    agent.get(({ caller, id }) => getAgent(deps, caller, id)),
    agent.update(
      { body: agentPatch, missing: "it, or something that the change names, is not there", conflict },
      ({ caller, id, patch }) => updateAgent(deps, caller, id, patch),
    ),
    agent.remove(
      {
        description:
          "Participants that name it by its identifier stay, and are nobody's until an agent has that identifier again.",
      },
      ({ caller, id }) => deleteAgent(deps, caller, id),
    ),
  ],
};
