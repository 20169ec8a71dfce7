import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { membershipSchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import {
  createMembership,
  deleteMembership,
  getMembership,
  listMemberships,
  updateMembership,
} from "./queries.ts";
import { membershipInput, membershipPatch } from "./schema.ts";

const membership = standardRoutes({ name: "membership", prefix: "mem", entity: membershipSchema });

/** Memberships: who belongs to the organization, and what they may do in it when another issuer's token names them. */
export const memberships: Resource<IamDeps> = {
  path: "/iam/memberships",
  tag: "Memberships",
  routes: (deps) => [
    membership.create(
      {
        body: membershipInput,
        missing: "the account or a role is not there",
        conflict: "the account is a member already",
      },
      ({ caller, body }) => createMembership(deps, caller, body),
    ),
    membership.list(({ caller, page }) => listMemberships(deps, caller, page)),
    membership.get(({ caller, id }) => getMembership(deps, caller, id)),
    membership.update(
      { body: membershipPatch, description: "Who adds permissions or roles must hold what they grant." },
      ({ caller, id, patch }) => updateMembership(deps, caller, id, patch),
    ),
    membership.remove(
      { description: "The account stays, and its API keys do what they may until they are deleted." },
      ({ caller, id }) => deleteMembership(deps, caller, id),
    ),
  ],
};
