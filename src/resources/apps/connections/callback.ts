import { z } from "zod";
import { nonJsonAnswer } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { definePublicRoute } from "../../kit/route.ts";
import { type AuthorizationResult, CALLBACK_PATH, completeAuthorization } from "./authorize.ts";

/** Texts of the callback page by outcome. They must not contain data from the request. */
const PAGES: Readonly<Record<AuthorizationResult, string>> = {
  authorized: "The connection is authorized. You can close this window.",
  unknown:
    "This authorization was already used or has expired, or its connection was changed. Start the authorization again.",
  denied: "The authorization was denied. The connection was not changed.",
  strange:
    "The response does not come from the connection's issuer. The connection was not changed. Check `config.issuer` and start again.",
  issuerNeeded:
    "oauth_issuer_needed: the issuer's response contains its name (`iss`, RFC 9207), but the connection has no `config.issuer`. The connection was not changed. Set `config.issuer` to the issuer's name and start again.",
  refused:
    "The issuer rejected the authorization code. The connection was not changed. The log of the gateway has the reason (connection.authorization_failed). Check the settings of the connection and start again.",
  unusable:
    "The issuer sent an access token that the connection cannot use. Its refresh token is stored, so you need not authorize again. Test the connection to see the reason, and change its settings.",
  unreachable:
    "The issuer's token endpoint could not be reached, or its response was not valid. The connection was not changed. The log of the gateway has the reason (connection.authorization_failed). Start again later.",
};

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "content-type": "text/plain; charset=utf-8",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
} as const;

const parameter = z.string().optional();

/** Public route to which OAuth issuers redirect the user after an authorization. */
export const connectionCallback: Resource = {
  tag: "Connections",
  routes: (deps) => [
    definePublicRoute({
      at: `GET ${CALLBACK_PATH}`,
      operation: "finishConnectionAuthorization",
      summary: "Complete an authorization",
      description:
        "An issuer redirects the person's browser to this address (RFC 6749, section 4.1.2). The one-time `state` is the credential. The `state` expires after ten minutes, at its first use, or when the connection is changed.",
      anyQuery: true,
      query: z.object({
        state: parameter,
        code: parameter,
        iss: parameter.describe("Name of the issuer (RFC 9207)."),
        error: parameter,
      }),
      answer: nonJsonAnswer(
        "text/plain",
        "The connection is authorized.",
        "The authorization failed. The response text states the reason.",
      ),
      async handle({ c }) {
        // Link previews send HEAD requests. They must not use up the `state`, which works only once.
        if (c.req.method === "HEAD") return c.body(null, 200, HEADERS);
        const finished = await completeAuthorization(deps, new URL(c.req.url).searchParams);
        return c.body(`${PAGES[finished]}\n`, finished === "authorized" ? 200 : 400, HEADERS);
      },
    }),
  ],
};
