import type { Context } from "hono";
import { z } from "zod";
import { recordAccess } from "../../../data/accounts/audit.ts";
import { ACCESS_TOKEN_SECONDS, type AccessTokens } from "../../../http/callers/access-tokens.ts";
import { bearerToken, notAMember, ORGANIZATION_HEADER } from "../../../http/callers/authenticate.ts";
import type { Identify } from "../../../http/callers/identify.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError, invalidParameters, notFound } from "../../../http/problem.ts";
import type { Resource } from "../../kit/resource.ts";
import type { RowDeps } from "../../kit/resource-spec.ts";
import { defineRoute } from "../../kit/route.ts";

export interface AuthDeps extends RowDeps {
  readonly accessTokens: AccessTokens;
  readonly identify: Identify;
}

const accessTokenSchema = z
  .object({
    accessToken: z.string().describe("A bearer token; opaque to clients."),
    tokenType: z.literal("Bearer"),
    expiresIn: z.int().describe("Seconds."),
  })
  .meta({
    id: "AccessToken",
    description: "A token for a short while, in the place of an API key or of another issuer's token.",
    example: { accessToken: "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", tokenType: "Bearer", expiresIn: 900 },
  });

const whoamiSchema = z
  .object({
    by: z.enum(["apiKey", "accessToken", "oidc"]).describe("The kind of the token."),
    account: z.object({ id: z.string(), name: z.string(), isService: z.boolean() }),
    organization: z.object({ id: z.string(), name: z.string() }),
    apiKeyId: z
      .string()
      .nullable()
      .describe("The key that was sent, or for which the access token was given."),
    defaultSpaceId: z.string().nullable(),
    permissions: z.array(z.string()).describe("What the caller may do at this moment; `*` is all."),
  })
  .meta({
    id: "Whoami",
    description: "The caller, as its token says.",
    example: {
      by: "apiKey",
      account: { id: "acc_01k5", name: "ci", isService: true },
      organization: { id: "org_01k5", name: "default" },
      apiKeyId: "key_01k5",
      defaultSpaceId: null,
      permissions: ["apps.read"],
    },
  });

/** Access tokens, and who brings one. */
export const auth: Resource<AuthDeps> = {
  path: "/auth",
  tag: "Authentication",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/tokens",
        operation: "createAccessToken",
        summary: "Get an access token",
        description:
          "The bearer token of the request is an API key, or a token of the OpenID Connect issuer, which gets one for the organization that is named; another access token is refused (403), or one could be " +
          "used to prolong itself. The token may do what the key, or the member, may do when it is used, and ends with the token of the request at the latest.",
        body: z.strictObject({
          organizationId: z.string().optional().meta({
            description:
              "For an issuer's token that does not say it: the organization to call for. A key calls for its own.",
          }),
        }),
        answer: accessTokenSchema,
        missing: "an API key names another organization than its own",
        permission: null,
        unplaced: true,
      },
      async ({ caller, body: { organizationId }, c }) => {
        const { id, seconds, ...owner } =
          caller.by === "oidc"
            ? await identityOf(deps, c, organizationId)
            : { id: keyOf(caller, organizationId), seconds: ACCESS_TOKEN_SECONDS };
        const entry = { action: "issue", entity: "accessToken", id } as const;
        await recordAccess(deps.db, { ...caller, ...owner }, [entry], deps.clock());
        const accessToken = await deps.accessTokens.issue(id, seconds);
        return { accessToken, tokenType: "Bearer" as const, expiresIn: seconds };
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/whoami",
        operation: "getCaller",
        summary: "Get the caller",
        description:
          "Whose token the request brings, and what it may do: for a page that shows what its reader may use.",
        answer: whoamiSchema,
        permission: null,
      },
      ({ caller }) => describeCaller(deps, caller),
    ),
  ],
};

async function describeCaller({ db }: AuthDeps, caller: Caller): Promise<z.input<typeof whoamiSchema>> {
  const { by, keyId, accountId, organizationId, defaultSpaceId, permissions } = caller;
  if (by === "liveToken") throw new Error("a live token opens its conversation alone");
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
  // It was there a moment ago: see `identify`.
  if (account === undefined || organization === undefined)
    throw new ApiError("unauthenticated", "The account of this token is gone.");
  return { by, account, organization, apiKeyId: keyId, defaultSpaceId, permissions: [...permissions].sort() };
}

/** @throws ApiError 403, 404 */
function keyOf({ by, keyId, organizationId }: Caller, named = organizationId): string {
  if (by !== "apiKey" || keyId === null) {
    const message = "Access tokens are given for an API key, or for a token of the issuer, only.";
    throw new ApiError("permission_denied", message);
  }
  if (named !== organizationId) throw notFound("organization");
  return keyId;
}

/** The identity of the token's subject in the organization that is named. @throws ApiError 400, 401, 403 */
async function identityOf(
  { identify, clock }: AuthDeps,
  c: Context,
  named = c.req.header(ORGANIZATION_HEADER),
): Promise<{
  readonly id: string;
  readonly seconds: number;
  readonly accountId: string;
  readonly organizationId: string;
}> {
  const identified = await identify(bearerToken(c.req.header("authorization")) ?? "", named);
  if (identified.by !== "oidc")
    throw new ApiError("unauthenticated", "That organization has no identity for the subject of this token.");
  const { account, expiresAtMs } = identified;
  if (account === undefined) throw invalidParameters([{ path: "organizationId", message: "is required" }]);
  if (account.permissions === undefined || (named ?? account.organizationId) !== account.organizationId)
    throw notAMember();
  const leftSeconds = Math.floor((expiresAtMs - clock()) / 1_000);
  const seconds = Math.max(1, Math.min(ACCESS_TOKEN_SECONDS, leftSeconds));
  return { id: account.identityId, seconds, accountId: account.id, organizationId: account.organizationId };
}
