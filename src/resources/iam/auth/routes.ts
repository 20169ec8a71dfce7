import { z } from "zod";
import { ACCESS_TOKEN_SECONDS, type AccessTokens } from "../../../http/callers/access-tokens.ts";
import { ApiError } from "../../../http/problem.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";

export interface AuthDeps {
  readonly accessTokens: AccessTokens;
}

const accessTokenSchema = z
  .object({
    accessToken: z.string().describe("A bearer token; opaque to clients."),
    tokenType: z.literal("Bearer"),
    expiresIn: z.int().describe("Seconds."),
  })
  .meta({
    id: "AccessToken",
    description: "A token for a short while, in the place of an API key.",
    example: { accessToken: "eyJhbGciOiJIUzI1NiJ9.e30.c2ln", tokenType: "Bearer", expiresIn: 900 },
  });

/** Access tokens. */
export const auth: Resource<AuthDeps> = {
  path: "/auth",
  tag: "Authentication",
  routes: ({ accessTokens }) => [
    defineRoute(
      {
        method: "post",
        path: "/tokens",
        operation: "createAccessToken",
        summary: "Get an access token for an API key",
        description:
          "The bearer token of the request is the API key itself; another access token is refused (403), or one could be " +
          "used to prolong itself. The token may do what its key may do when it is used, and ends with it at the latest.",
        body: z.strictObject({}),
        answer: accessTokenSchema,
        permission: null,
      },
      async ({ caller }) => {
        if (caller.by !== "apiKey" || caller.keyId === null) {
          throw new ApiError("permission_denied", "Access tokens are given for an API key only.");
        }
        const accessToken = await accessTokens.issue(caller.keyId, ACCESS_TOKEN_SECONDS);
        return { accessToken, tokenType: "Bearer" as const, expiresIn: ACCESS_TOKEN_SECONDS };
      },
    ),
  ],
};
