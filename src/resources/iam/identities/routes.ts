import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { identitySchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { createIdentity, deleteIdentity, getIdentity, listIdentities, updateIdentity } from "./queries.ts";
import { identityInput, identityPatch } from "./schema.ts";

const identity = standardRoutes({
  name: "identity",
  prefix: "idn",
  entity: identitySchema,
});
const conflict =
  "there is an identity of that provider and identifier: in the organization for `org`, anywhere for others";

/** Identities: who an account is to an OIDC issuer, or in the organization's own naming. */
export const identities: Resource<IamDeps> = {
  path: "/iam/identities",
  tag: "Identities",
  routes: (deps) => [
    identity.create(
      {
        body: identityInput,
        missing: "the account is not there",
        conflict,
        description: "Whoever has it may do what the account may as a member: the caller must hold that.",
      },
      ({ caller, body }) => createIdentity(deps, caller, body),
    ),
    identity.list(({ caller, page }) => listIdentities(deps, caller, page)),
    identity.get(({ caller, id }) => getIdentity(deps, caller, id)),
    identity.update({ body: identityPatch, conflict }, ({ caller, id, patch }) =>
      updateIdentity(deps, caller, id, patch),
    ),
    identity.remove({}, ({ caller, id }) => deleteIdentity(deps, caller, id)),
  ],
};
