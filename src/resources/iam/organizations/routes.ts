import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { organizationSchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import {
  deleteOrganization,
  foundOrganization,
  getOrganization,
  listOrganizations,
  updateOrganization,
} from "./queries.ts";
import { newOrganizationSchema, organizationInput, organizationPatch } from "./schema.ts";

const organization = standardRoutes({ name: "organization", prefix: "org", entity: organizationSchema });

/** Organizations: a caller sees its own. */
export const organizations: Resource<IamDeps> = {
  path: "/organizations",
  tag: "Organizations",
  routes: (deps) => [
    organization.create(
      {
        body: organizationInput,
        answer: newOrganizationSchema,
        description:
          "It has a space, a service account and an API key that may do all in it, which is told here only. Nobody else sees it, its founder included.",
      },
      ({ caller, body }) => foundOrganization(deps, caller, body),
    ),
    organization.list(({ caller, page }) => listOrganizations(deps, caller, page)),
    organization.get(({ caller, id }) => getOrganization(deps, caller, id)),
    organization.update({ body: organizationPatch }, ({ caller, id, patch }) =>
      updateOrganization(deps, caller, id, patch),
    ),
    organization.remove(
      {
        conflict:
          "it has anything else in it, such as apps or blueprints, or is the organization of the first start",
        description:
          "Its keys, accounts, roles, groups and spaces go with it: nobody can call for it any more.",
      },
      ({ caller, id }) => deleteOrganization(deps, caller, id),
    ),
  ],
};
