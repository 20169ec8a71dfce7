import { standardResource } from "../../kit/standard-resource.ts";
import { space } from "../iam-entities.ts";

/** Apps are installed in spaces. */
export const spaces = standardResource({
  path: "/spaces",
  tag: "Spaces",
  name: "space",
  table: "spaces",
  shape: space,
  audit: "space",
  feed: "access",
  inUse: {
    when: "the space has apps, or was created at the first start",
    message: "The space has apps, or was created at the first start.",
  },
  notes: {
    delete: {
      description:
        "API keys with this default space no longer have one. Agents, knowledge bases, rooms and conversations of the space stay, without a space.",
    },
  },
});
