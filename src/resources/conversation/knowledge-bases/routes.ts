import type { RowDeps } from "../../kit/owned-rows.ts";
import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { knowledgeBaseSchema } from "../agent-entities.ts";
import {
  createKnowledgeBase,
  deleteKnowledgeBase,
  getKnowledgeBase,
  listKnowledgeBases,
  updateKnowledgeBase,
} from "./queries.ts";
import { knowledgeBaseInput, knowledgeBasePatch } from "./schema.ts";

const knowledgeBase = standardRoutes({
  name: "knowledgeBase",
  words: "knowledge base",
  prefix: "kb",
  entity: knowledgeBaseSchema,
});

/** Knowledge bases: what agents know. */
export const knowledgeBases: Resource<RowDeps> = {
  path: "/knowledge-bases",
  tag: "Knowledge bases",
  routes: (deps) => [
    knowledgeBase.create(
      { body: knowledgeBaseInput, missing: "the owner, the space or the collection is not there" },
      ({ caller, body }) => createKnowledgeBase(deps, caller, body),
    ),
    knowledgeBase.list(({ caller, page }) => listKnowledgeBases(deps, caller, page)),
    knowledgeBase.get(({ caller, id }) => getKnowledgeBase(deps, caller, id)),
    knowledgeBase.update(
      { body: knowledgeBasePatch, missing: "it, its owner, its space or its collection is not there" },
      ({ caller, id, patch }) => updateKnowledgeBase(deps, caller, id, patch),
    ),
    knowledgeBase.remove({ conflict: "an agent has it" }, ({ caller, id }) =>
      deleteKnowledgeBase(deps, caller, id),
    ),
  ],
};
