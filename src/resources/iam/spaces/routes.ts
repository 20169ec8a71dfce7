import { standardResource } from "../../kit/standard-resource.ts";
import { space } from "../iam-entities.ts";

/** Spaces: what apps are installed in. */
export const spaces = standardResource({
  path: "/spaces",
  tag: "Spaces",
  name: "space",
  table: "spaces",
  shape: space,
  audit: "space",
  feed: "access",
  inUse: {
    when: "the space has apps, or is the one that the first start has made",
    message: "The space has apps, or is the one of the first start.",
  },
  notes: {
    delete: {
      description:
        "API keys whose default space it was have none; agents, knowledge bases, rooms and conversations that were in it are in none.",
    },
  },
});
