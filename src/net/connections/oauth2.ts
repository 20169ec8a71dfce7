import { z } from "zod";
import { checkFields } from "../../lib/check-fields.ts";
import { httpUrl, secretText } from "./fields.ts";
import type { ConnectionKind } from "./kind.ts";

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
    grant: z
      .enum(["clientCredentials", "authorizationCode", "refreshToken"])
      .describe(
        "How to obtain tokens: `clientCredentials` uses only the client's credentials; `authorizationCode` needs a person to authorize at the issuer (GET /connections/{connectionId}/authorize); `refreshToken` uses the refresh token given here.",
      ),
    issuer: httpUrl.optional().meta({
      description: "Issuer identifier. Inlet discovers the endpoints from its metadata.",
      example: "https://id.example.com",
    }),
    tokenEndpoint: httpUrl.optional().describe("Token endpoint, to use instead of the discovered one."),
    authorizationEndpoint: httpUrl
      .optional()
      .describe("Authorization endpoint, to use instead of the discovered one."),
    clientId: clientText.meta({ example: "inlet" }),
    clientSecret: secretText.optional().meta({ writeOnly: true, example: "s-6f1a" }),
    clientAuthentication: z
      .enum(["client_secret_basic", "client_secret_post", "none"])
      .default("client_secret_basic")
      .describe("Client authentication method at the token endpoint (RFC 7591, section 2)."),
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
      .default([]),
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
      .default([])
      .meta({
        description:
          "Token types of the issuer to use like bearer tokens, in any case. By default, only `bearer` and a missing type are accepted.",
        example: ["bot"],
      }),
    tokenParameters: parameters.describe("Additional parameters for the token endpoint."),
    authorizationParameters: parameters.describe("Additional parameters for the authorization endpoint."),
  })
  .check(
    checkFields((config, missing) => {
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

export type OAuth2Config = z.output<typeof configSchema>;

/** Authentication with an OAuth 2.0 access token (RFC 6749), which is renewed before it expires. */
export const oauth2: ConnectionKind<typeof configSchema, "oauth2"> = {
  kind: "oauth2",
  configSchema,
  secretFields: ["clientSecret", "refreshToken"],
  destinations: ["issuer", "tokenEndpoint"],
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
