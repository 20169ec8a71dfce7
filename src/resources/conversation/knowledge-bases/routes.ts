import { ACCOUNTS, COLLECTIONS, SPACES } from "../../kit/references.ts";
import { standardResource } from "../../kit/standard-resource.ts";
import { knowledgeBase } from "../agent-entities.ts";

/** Knowledge bases: what agents know. */
export const knowledgeBases = standardResource({
  path: "/knowledge-bases",
  tag: "Knowledge bases",
  name: "knowledgeBase",
  table: "knowledgeBases",
  shape: knowledgeBase,
  references: { ownerId: ACCOUNTS, spaceId: SPACES, collectionId: COLLECTIONS },
  inUse: { when: "an agent has it", message: "Agents have the knowledge base." },
});
