import { readFileSync } from "node:fs";
import { z } from "zod";
import { parseJson } from "../../event/parse-json.ts";
import { httpUrl } from "./fields.ts";

export const CLIENT_AUTHENTICATIONS = ["client_secret_basic", "client_secret_post", "none"] as const;

const parameters = z.record(z.string(), z.string());

export const oauthProviderSchema = z.strictObject({
  provider: z
    .string()
    .regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 characters of a-z 0-9 -")
    .meta({ description: "Value for `config.provider`.", example: "github" }),
  title: z.string().min(1).max(255).describe("Name of the provider."),
  documentationUrl: z.url().describe("The provider's documentation of OAuth, from which these values come."),
  issuer: httpUrl
    .optional()
    .describe("Issuer identifier, for providers whose callbacks contain it (RFC 9207)."),
  authorizationEndpoint: httpUrl,
  tokenEndpoint: httpUrl,
  clientAuthentication: z.enum(CLIENT_AUTHENTICATIONS),
  scopes: z
    .array(z.string())
    .describe("Scopes that a sign-in requests. Empty if the app at the provider determines them."),
  tokenTypes: z
    .array(z.string())
    .default([])
    .describe("Token types of the provider that are used like bearer tokens."),
  authorizationParameters: parameters
    .default({})
    .describe("Additional parameters for the authorization endpoint."),
  allowedOrigins: z
    .array(z.string())
    .describe(
      "Origins of the provider's API. Empty if each customer has an origin, so that a connection must name it.",
    ),
  setup: z
    .string()
    .min(1)
    .max(1_024)
    .describe("Location of the client id and the client secret at the provider."),
});
export type OAuthProvider = z.output<typeof oauthProviderSchema>;

/** Providers whose OAuth settings are known, by name. */
export const OAUTH_PROVIDERS: ReadonlyMap<string, OAuthProvider> = new Map(
  z
    .array(oauthProviderSchema)
    .parse(parseJson(readFileSync(new URL("./oauth-providers.json", import.meta.url), "utf8")))
    .map((one) => [one.provider, one]),
);
