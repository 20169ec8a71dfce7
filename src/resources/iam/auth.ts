import type { Context } from "hono";
import { z } from "zod";
import { ACCESS_TOKEN_SECONDS } from "../../http/callers/access-tokens.ts";
import { bearerToken, notAMember, ORGANIZATION_HEADER } from "../../http/callers/authenticate.ts";
import type { Caller } from "../../http/context.ts";
import { ApiError, invalidParameters, notFound } from "../../http/errors.ts";
import type { Deps } from "../kit/deps.ts";
import { recordUse } from "../kit/record-use.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";

const accessTokenSchema = z
  .object({
    accessToken: z.string().describe("A bearer token. Clients must treat it as opaque."),
    tokenType: z.literal("Bearer"),
    expiresIn: z.int().describe("Lifetime in seconds."),
  })
  .meta({
    id: "AccessToken",
    description: "A short-lived token that replaces an API key or a token of the OpenID Connect issuer.",
    example: { accessToken: "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", tokenType: "Bearer", expiresIn: 900 },
  });

const whoamiSchema = z
  .object({
    by: z.enum(["apiKey", "accessToken", "oidc"]).describe("The kind of the request's token."),
    account: z.object({ id: z.string(), name: z.string(), isService: z.boolean() }),
    organization: z.object({ id: z.string(), name: z.string() }),
    apiKeyId: z
      .string()
      .nullable()
      .describe("The API key of the request, or the one that the access token was issued for."),
    defaultSpaceId: z.string().nullable(),
    permissions: z
      .array(z.string())
      .describe("The caller's current permissions. `*` includes all permissions."),
  })
  .meta({
    id: "Whoami",
    description: "The caller that the token identifies.",
    example: {
      by: "apiKey",
      account: { id: "acc_01k5", name: "ci", isService: true },
      organization: { id: "org_01k5", name: "default" },
      apiKeyId: "key_01k5",
      defaultSpaceId: null,
      permissions: ["apps.read"],
    },
  });

export const auth: Resource = {
  tag: "Authentication",
  routes: (deps) => [
    defineRoute({
      at: "POST /auth/tokens",
      operation: "createAccessToken",
      summary: "Get an access token",
      description:
        "Send an API key or a token of the OpenID Connect issuer as bearer token. An access token is rejected (403), because it could otherwise renew itself. " +
        "The new token has the current permissions of the key or member each time it is used. It expires no later than the request's token.",
      body: z.strictObject({
        organizationId: z.string().optional().meta({
          description:
            "The organization to act for, if the issuer's token does not name one. An API key always acts for its own organization.",
        }),
      }),
      answer: accessTokenSchema,
      missing: "the request has an API key and names another organization",
      permission: null,
      unplaced: true,
      async handle({ caller, body: { organizationId }, c }) {
        const { id, seconds, ...owner } =
          caller.by === "oidc"
            ? await identityOf(deps, c, organizationId)
            : { id: keyOf(caller, organizationId), seconds: ACCESS_TOKEN_SECONDS };
        await recordUse(deps, { ...caller, ...owner }, "issue", "accessToken", [id]);
        const accessToken = await deps.accessTokens.issue(id, seconds);
        return { accessToken, tokenType: "Bearer" as const, expiresIn: seconds };
      },
    }),
    defineRoute({
      at: "GET /auth/whoami",
      operation: "getCaller",
      summary: "Get the caller",
      description:
        "The account and organization of the request's token, and its permissions. A user interface can use this to show only permitted actions.",
      answer: whoamiSchema,
      permission: null,
      handle: ({ caller }) => describeCaller(deps, caller),
    }),
  ],
};

async function describeCaller({ db }: Deps, caller: Caller): Promise<z.input<typeof whoamiSchema>> {
  const { by, keyId, accountId, organizationId, defaultSpaceId, permissions } = caller;
  if (by === "liveToken") throw new Error("a live token only gives access to its conversation");
  const account = await db
    .selectFrom("accounts")
    .select(["id", "name", "isService"])
    .where("id", "=", accountId)
    .executeTakeFirst();
  const organization = await db
    .selectFrom("organizations")
    .select(["id", "name"])
    .where("id", "=", organizationId)
    .executeTakeFirst();
  // Both rows existed when `identify` ran, so one was deleted in the meantime.
  if (account === undefined || organization === undefined)
    throw new ApiError("unauthenticated", "The account of this token has been deleted.");
  return { by, account, organization, apiKeyId: keyId, defaultSpaceId, permissions: [...permissions].sort() };
}

/** Returns the id of the API key in the request. @throws ApiError 403 for other kinds of token; 404 if another organization is named */
function keyOf({ by, keyId, organizationId }: Caller, named = organizationId): string {
  if (by !== "apiKey" || keyId === null) {
    const message = "To get an access token, send an API key or a token of the OpenID Connect issuer.";
    throw new ApiError("permission_denied", message);
  }
  if (named !== organizationId) throw notFound("organization");
  return keyId;
}

/** Finds the identity that belongs to the token and the named organization. @throws ApiError 400, 401, 403 */
async function identityOf({ identify, clock }: Deps, c: Context, named = c.req.header(ORGANIZATION_HEADER)) {
  const identified = await identify(bearerToken(c.req.header("authorization")) ?? "", named);
  if (identified.by !== "oidc")
    throw new ApiError("unauthenticated", "The organization has no identity for the subject of this token.");
  const { account, expiresAtMs } = identified;
  if (account === undefined) throw invalidParameters([{ path: "organizationId", message: "is required" }]);
  if (account.permissions === undefined || (named ?? account.organizationId) !== account.organizationId)
    throw notAMember();
  const leftSeconds = Math.floor((expiresAtMs - clock()) / 1_000);
  const seconds = Math.max(1, Math.min(ACCESS_TOKEN_SECONDS, leftSeconds));
  return { id: account.identityId, seconds, accountId: account.id, organizationId: account.organizationId };
}
