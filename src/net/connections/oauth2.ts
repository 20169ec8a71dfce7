import { z } from "zod";
import { checkFields } from "../../lib/check-fields.ts";
import { httpUrl, secretText } from "./fields.ts";
import type { ConnectionKind } from "./kind.ts";
import { CLIENT_AUTHENTICATIONS, OAUTH_PROVIDERS } from "./oauth-providers.ts";

/** OAuth parameters that the gateway sets itself (RFC 6749, RFC 7636). Users cannot override them. */
const RESERVED = [
  "client_assertion",
  "client_assertion_type",
  "client_id",
  "client_secret",
  "code",
  "code_challenge",
  "code_challenge_method",
  "code_verifier",
  "grant_type",
  "redirect_uri",
  "refresh_token",
  "request",
  "request_uri",
  "response_mode",
  "response_type",
  "scope",
  "state",
];
const MAX_PARAMETERS = 20;

const parameters = z
  .record(
    z
      .string()
      .regex(/^[\w.-]{1,64}$/, "must be a valid parameter name")
      .refine((name) => !RESERVED.includes(name), "is a parameter that Inlet sets itself"),
    z.string().max(2_048),
  )
  .refine((all) => Object.keys(all).length <= MAX_PARAMETERS, `must have at most ${MAX_PARAMETERS} entries`)
  .default({});

const clientText = z
  .string()
  .min(1)
  .max(1_024)
  .regex(/^[\x20-\x7e]+$/, "must be printable ASCII");

const configSchema = z
  .strictObject({
    provider: z
      .enum([...OAUTH_PROVIDERS.keys()])
      .optional()
      .meta({
        description:
          "Known provider (GET /oauth-providers). Its endpoints, scopes and other settings apply, unless you set them here.",
        example: "github",
      }),
    clientId: clientText.meta({ example: "inlet" }),
    clientSecret: secretText.optional().meta({ writeOnly: true, example: "s-6f1a" }),
    grant: z
      .enum(["clientCredentials", "authorizationCode", "refreshToken"])
      .optional()
      .describe(
        "How to obtain tokens: `clientCredentials` uses only the client's credentials; `authorizationCode` needs a person to authorize at the issuer (GET /connections/{connectionId}/authorize); `refreshToken` uses the refresh token given here. With a provider, the default is `authorizationCode`.",
      ),
    issuer: httpUrl.optional().meta({
      description: "Issuer identifier. Inlet discovers the endpoints from its metadata.",
      example: "https://id.example.com",
    }),
    tokenEndpoint: httpUrl.optional().describe("Token endpoint, to use instead of the discovered one."),
    authorizationEndpoint: httpUrl
      .optional()
      .describe("Authorization endpoint, to use instead of the discovered one."),
    clientAuthentication: z
      .enum(CLIENT_AUTHENTICATIONS)
      .optional()
      .describe(
        "Client authentication method at the token endpoint (RFC 7591, section 2). The default is that of the provider, or `client_secret_basic`.",
      ),
    refreshToken: secretText
      .optional()
      .meta({ writeOnly: true, description: "Refresh token for the grant `refreshToken`." }),
    scopes: z
      .array(
        z
          .string()
          .regex(/^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/, "must be a valid scope (RFC 6749, section 3.3)"),
      )
      .max(100)
      .optional()
      .describe("Scopes to request. The default is the scopes of the provider, or none."),
    audience: z
      .string()
      .min(1)
      .max(2_048)
      .optional()
      .describe("Value of the `audience` parameter, which some issuers require."),
    resource: httpUrl
      .optional()
      .describe("URI of the API that the token is for: the parameter `resource` (RFC 8707)."),
    tokenTypes: z
      .array(z.string().regex(/^[\w.:+-]{1,64}$/, "must be 1 to 64 letters, digits or . : + _ -"))
      .max(10)
      .optional()
      .meta({
        description:
          "Token types of the issuer to use like bearer tokens, in any case. The default is the types of the provider. `bearer` and a missing type are always accepted.",
        example: ["bot"],
      }),
    tokenParameters: parameters.describe("Additional parameters for the token endpoint."),
    authorizationParameters: parameters.describe("Additional parameters for the authorization endpoint."),
  })
  .check(
    checkFields((given, missing) => {
      const config = resolveOAuth2(given);
      if (given.grant === undefined && given.provider === undefined)
        missing("grant", "is required if provider is not set");
      if (config.issuer === undefined && config.tokenEndpoint === undefined)
        missing("issuer", "is required if tokenEndpoint is not set");
      const needsPerson = config.grant === "authorizationCode";
      if (needsPerson && config.issuer === undefined && config.authorizationEndpoint === undefined)
        missing("authorizationEndpoint", "is required if issuer is not set");
      const isPublic = config.clientAuthentication === "none";
      if (isPublic && config.grant === "clientCredentials")
        missing("clientAuthentication", "must not be none with the grant clientCredentials");
      if (!isPublic && config.clientSecret === undefined)
        missing("clientSecret", `is required with ${config.clientAuthentication}`);
      if (config.grant === "refreshToken" && config.refreshToken === undefined)
        missing("refreshToken", "is required with the grant refreshToken");
      if (config.grant !== "refreshToken" && config.refreshToken !== undefined)
        missing("refreshToken", "is only allowed with the grant refreshToken");
    }),
  );

type GivenConfig = z.output<typeof configSchema>;

/** Settings of a connection, with the defaults of its provider. */
export type OAuth2Config = Omit<GivenConfig, Defaulted> & {
  readonly [K in Defaulted]: NonNullable<GivenConfig[K]>;
};
type Defaulted = "grant" | "clientAuthentication" | "scopes" | "tokenTypes";

/** Adds the defaults of the provider to the given settings. */
function resolveOAuth2(given: GivenConfig): OAuth2Config {
  const provider = given.provider === undefined ? undefined : OAUTH_PROVIDERS.get(given.provider);
  // Another issuer, such as a self-hosted GitLab, has its own endpoints. Its codes must never reach those of the provider.
  const hasOwnIssuer = given.issuer !== undefined && given.issuer !== provider?.issuer;
  const endpoints = provider &&
    !hasOwnIssuer && {
      ...(provider.issuer !== undefined && { issuer: provider.issuer }),
      authorizationEndpoint: provider.authorizationEndpoint,
      tokenEndpoint: provider.tokenEndpoint,
    };
  return {
    ...endpoints,
    ...given,
    grant: given.grant ?? "authorizationCode",
    clientAuthentication:
      given.clientAuthentication ?? provider?.clientAuthentication ?? "client_secret_basic",
    scopes: given.scopes ?? provider?.scopes ?? [],
    tokenTypes: given.tokenTypes ?? provider?.tokenTypes ?? [],
    authorizationParameters: { ...provider?.authorizationParameters, ...given.authorizationParameters },
  };
}

/**
 * Parses stored or requested settings, and adds the defaults of the provider.
 *
 * @throws ZodError
 */
export const parseOAuth2Config = (config: unknown): OAuth2Config => resolveOAuth2(configSchema.parse(config));

/** Authentication with an OAuth 2.0 access token (RFC 6749), which is renewed before it expires. */
export const oauth2: ConnectionKind<typeof configSchema, "oauth2"> = {
  kind: "oauth2",
  configSchema,
  secretFields: ["clientSecret", "refreshToken"],
  destinations: ["provider", "issuer", "tokenEndpoint"],
  issuesTokens: true,
  apply(_, accessToken) {
    if (accessToken === undefined) throw new Error("there is no access token to apply");
    return { headers: { authorization: `Bearer ${accessToken}` } };
  },
};

/** Returns the fields that belong to a grant. If one of them changes, all earlier tokens become invalid. */
export const grantOf = ({ grant, issuer, tokenEndpoint, clientId, refreshToken }: OAuth2Config) => ({
  grant,
  issuer,
  tokenEndpoint,
  clientId,
  refreshToken,
});
