import { standardResource } from "../kit/standard-resource.ts";
import { space } from "./schema.ts";

export const spaces = standardResource({
  path: "/spaces",
  tag: "Spaces",
  name: "space",
  table: "spaces",
  shape: space,
  audit: "space",
  feed: "access",
  inUse: {
    when: "the space has apps, or it is the one that Inlet created at its first start",
    message:
      "The space cannot be deleted. Either it has apps, or it is the one that Inlet created at its first start.",
  },
  notes: {
    delete: {
      description:
        "API keys that have this space as their default space then have none. Agents, knowledge bases, rooms and conversations of the space remain, without a space.",
    },
  },
});
