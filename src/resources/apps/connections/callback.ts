import { z } from "zod";
import { nonJsonAnswer } from "../../kit/answer.ts";
import type { Resource } from "../../kit/resource.ts";
import { definePublicRoute } from "../../kit/route.ts";
import { type AuthorizeDeps, CALLBACK_PATH, endAuthorization, type Finished } from "./authorize.ts";

/** All that the page ever says: nothing of what came with the request. */
const PAGES: Readonly<Record<Finished, string>> = {
  authorized: "The connection is authorized. You can close this window.",
  unknown:
    "This authorization is not known: it was used already, has expired, or its connection was changed. Begin anew.",
  denied: "The authorization was not given. Nothing was changed.",
  strange: "This is not the answer of the issuer that was asked. Nothing was changed.",
  issuerNeeded:
    "oauth_issuer_needed: the issuer names itself in its answer (iss, RFC 9207), and the connection does not say which name is right. Nothing was changed; set `config.issuer` of the connection to the issuer's name, and begin anew.",
  refused:
    "The issuer does not accept its own authorization. Nothing was changed; check the connection's settings.",
  unreachable: "The issuer cannot be asked for tokens just now. Nothing was changed; begin anew later.",
};

const HEADERS = {
  "cache-control": "no-store",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "content-type": "text/plain; charset=utf-8",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
} as const;

const parameter = z.string().optional();

/** Where issuers send people back to. */
export const connectionCallback: Resource<AuthorizeDeps> = {
  path: CALLBACK_PATH,
  tag: "Connections",
  routes: (deps) => [
    definePublicRoute(
      {
        method: "get",
        path: "/",
        operation: "finishConnectionAuthorization",
        summary: "Take an issuer's answer to an authorization",
        description:
          "For browsers that an issuer sends back (RFC 6749, section 4.1.2). The one-time `state` is the credential: it ends after ten minutes, with its first use, or when the connection is changed.",
        anyQuery: true,
        query: z.object({
          state: parameter,
          code: parameter,
          iss: parameter.describe("RFC 9207."),
          error: parameter,
        }),
        answer: nonJsonAnswer("text/plain", "The connection is authorized.", "It is not: the text says why."),
      },
      async ({ c }) => {
        // Nobody is sent here twice with the same: a look ahead must not use it up.
        if (c.req.method === "HEAD") return c.body(null, 200, HEADERS);
        const finished = await endAuthorization(deps, new URL(c.req.url).searchParams);
        return c.body(`${PAGES[finished]}\n`, finished === "authorized" ? 200 : 400, HEADERS);
      },
    ),
  ],
};
