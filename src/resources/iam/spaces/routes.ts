import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { spaceSchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { createSpace, deleteSpace, getSpace, listSpaces, updateSpace } from "./queries.ts";
import { spaceInput, spacePatch } from "./schema.ts";

const space = standardRoutes({ name: "space", prefix: "spc", entity: spaceSchema });

/** Spaces: what apps are installed in. */
export const spaces: Resource<IamDeps> = {
  path: "/spaces",
  tag: "Spaces",
  routes: (deps) => [
    space.create({ body: spaceInput }, ({ caller, body }) => createSpace(deps, caller, body)),
    space.list(({ caller, page }) => listSpaces(deps, caller, page)),
    space.get(({ caller, id }) => getSpace(deps, caller, id)),
    space.update({ body: spacePatch }, ({ caller, id, patch }) => updateSpace(deps, caller, id, patch)),
    space.remove(
      {
        conflict: "the space has apps, or is the one that the first start has made",
        description:
          "API keys whose default space it was have none; agents, knowledge bases, rooms and conversations that were in it are in none.",
      },
      ({ caller, id }) => deleteSpace(deps, caller, id),
    ),
  ],
};
