import type { Resource } from "../../kit/resource.ts";
import { standardRoutes } from "../../kit/standard-routes.ts";
import { apiKeySchema, newApiKeySchema } from "../iam-entities.ts";
import type { IamDeps } from "../iam-grants.ts";
import { getApiKey, issueApiKey, listApiKeys, revokeApiKey, updateApiKey } from "./queries.ts";
import { apiKeyInput, apiKeyPatch } from "./schema.ts";

const apiKey = standardRoutes({ name: "apiKey", words: "API key", prefix: "key", entity: apiKeySchema });

/** API keys: bearer tokens of the organization. Each is shown once. */
export const apiKeys: Resource<IamDeps> = {
  path: "/iam/api-keys",
  tag: "API keys",
  routes: (deps) => [
    apiKey.create(
      {
        body: apiKeyInput,
        answer: newApiKeySchema,
        missing: "the account, a role or the space is not there",
        description:
          "`key` is the bearer token, told here only. What it may do is the union of its permissions and of those that its roles have when it is used.",
      },
      ({ caller, body }) => issueApiKey(deps, caller, body),
    ),
    apiKey.list(({ caller, page }) => listApiKeys(deps, caller, page)),
    apiKey.get(({ caller, id }) => getApiKey(deps, caller, id)),
    apiKey.update(
      {
        body: apiKeyPatch,
        description:
          "Who adds permissions or roles, or lets the key last longer, must hold what that grants.",
      },
      ({ caller, id, patch }) => updateApiKey(deps, caller, id, patch),
    ),
    apiKey.remove(
      { description: "Revokes it for good: in force everywhere within five seconds. Its account stays." },
      ({ caller, id }) => revokeApiKey(deps, caller, id),
    ),
  ],
};
