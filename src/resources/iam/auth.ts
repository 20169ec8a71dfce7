import type { Context } from "hono";
import { z } from "zod";
import { ACCESS_TOKEN_SECONDS, SIGN_IN_SECONDS } from "../../http/callers/access-tokens.ts";
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
        "Send an API key or a token of the OpenID Connect issuer as bearer token. The new token has the current permissions of the key or member each time it is used. It expires no later than the issuer's token. " +
        "A valid access token can be exchanged for a new one until 12 hours after the first one was issued (403 after that).",
      body: z.strictObject({
        organizationId: z.string().optional().meta({
          description:
            "The organization to act for, if the issuer's token does not name one. An API key or access token always acts for its own organization.",
        }),
      }),
      answer: accessTokenSchema,
      missing: "the request has an API key or access token and names another organization",
      permission: null,
      unplaced: true,
      async handle({ caller, body: { organizationId }, c }) {
        const { id, seconds, signedInAtMs, ...owner } =
          caller.by === "oidc"
            ? await identityOf(deps, c, organizationId)
            : await renewableOf(deps, c, caller, organizationId);
        const action = caller.by === "accessToken" ? "renew" : "issue";
        await recordUse(deps, { ...caller, ...owner }, action, "accessToken", [id]);
        const accessToken = await deps.accessTokens.issue(id, seconds, signedInAtMs);
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

/** Subject and lifetime of the new token. */
interface Renewable {
  readonly id: string;
  readonly seconds: number;
  /** `undefined` if the new token starts a sign-in. */
  readonly signedInAtMs?: number;
}

/** Finds the API key or identity for which the request's API key or access token can get a token. @throws ApiError 401, 403, 404 */
async function renewableOf(
  { accessTokens, clock }: Deps,
  c: Context,
  { by, keyId, organizationId }: Caller,
  named = organizationId,
): Promise<Renewable> {
  if (named !== organizationId) throw notFound("organization");
  if (by === "apiKey" && keyId !== null) return { id: keyId, seconds: ACCESS_TOKEN_SECONDS };
  const token = await accessTokens.open(bearerToken(c.req.header("authorization")) ?? "");
  if (token === undefined)
    throw new ApiError("unauthenticated", "The access token expired during this request. Sign in again.");
  if (clock() >= token.signedInAtMs + SIGN_IN_SECONDS * 1_000) {
    const message =
      "The sign-in of this access token is older than 12 hours. Send an API key or a token of the OpenID Connect issuer.";
    throw new ApiError("permission_denied", message);
  }
  return { ...token, seconds: ACCESS_TOKEN_SECONDS };
}

/** Finds the identity that belongs to the token and the named organization. @throws ApiError 400, 401, 403 */
async function identityOf(
  { identify, clock }: Deps,
  c: Context,
  named = c.req.header(ORGANIZATION_HEADER),
): Promise<Renewable & { readonly accountId: string; readonly organizationId: string }> {
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
