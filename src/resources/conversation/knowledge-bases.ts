import { ACCOUNTS, COLLECTIONS, SPACES } from "../kit/references.ts";
import { standardResource } from "../kit/standard-resource.ts";
import { knowledgeBase } from "./schema.ts";

export const knowledgeBases = standardResource({
  path: "/knowledge-bases",
  tag: "Knowledge bases",
  name: "knowledgeBase",
  table: "knowledgeBases",
  shape: knowledgeBase,
  references: { ownerId: ACCOUNTS, spaceId: SPACES, collectionId: COLLECTIONS },
  inUse: {
    when: "an agent uses the knowledge base",
    message: "The knowledge base is used by agents, so it cannot be deleted.",
  },
});
