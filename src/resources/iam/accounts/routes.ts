import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { accountSchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { createAccount, deleteAccount, getAccount, listAccounts, updateAccount } from "./queries.ts";
import { accountInput, accountPatch } from "./schema.ts";

const account = standardRoutes({ name: "account", prefix: "acc", entity: accountSchema });

/** Accounts: who calls. An organization sees its members and those that it has made. */
export const accounts: Resource<IamDeps> = {
  path: "/iam/accounts",
  tag: "Accounts",
  routes: (deps) => [
    account.create(
      {
        body: accountInput,
        description: "It becomes a member of the organization, which grants nothing yet.",
      },
      ({ caller, body }) => createAccount(deps, caller, body),
    ),
    account.list(({ caller, page }) => listAccounts(deps, caller, page)),
    account.get(({ caller, id }) => getAccount(deps, caller, id)),
    account.update(
      {
        body: accountPatch,
        conflict: "the status would go back, or past a step",
        description:
          "The status goes from pending to active to disabled, step by step and never back. A disabled account's keys and identities let nobody in.",
      },
      ({ caller, id, patch }) => updateAccount(deps, caller, id, patch),
    ),
    account.remove(
      {
        conflict: "it has API keys that are not revoked, or is the account of the first start",
        description:
          "Its memberships, identities and places in groups, rooms and conversations go with it; what it has written, owned or was to do is nobody's.",
      },
      ({ caller, id }) => deleteAccount(deps, caller, id),
    ),
  ],
};
