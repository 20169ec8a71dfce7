import { z } from "zod";
import { shortListQuery } from "../../../http/page.ts";
import { OAUTH_PROVIDERS, oauthProviderSchema } from "../../../net/connections/oauth-providers.ts";
import { listOf } from "../../kit/answer.ts";
import { slicePage } from "../../kit/list-page.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { CALLBACK_PATH } from "./authorize.ts";

const providerSchema = z
  .object(oauthProviderSchema.shape)
  .extend({ redirectUri: z.url().describe("Redirect URI of this gateway, to register at the provider.") })
  .meta({
    id: "OAuthProvider",
    description: "OAuth settings of a known provider, for `config.provider` of a connection.",
  });

/** Providers with built-in OAuth settings. All callers get the same list. */
export const oauthProviders: Resource = {
  tag: "Connections",
  routes: ({ baseUrl }) => [
    defineRoute({
      at: "GET /oauth-providers",
      operation: "listOAuthProviders",
      summary: "List the providers with built-in OAuth settings",
      description:
        "A connection that names one of them in `config.provider` needs only `clientId` and `clientSecret`. Authorizations use PKCE with every provider.",
      permission: "connections.read",
      query: shortListQuery,
      answer: listOf(providerSchema),
      async handle({ query }) {
        const redirectUri = baseUrl + CALLBACK_PATH;
        return slicePage(
          [...OAUTH_PROVIDERS.values()].map((provider) => ({ ...provider, redirectUri })),
          query,
        );
      },
    }),
  ],
};
