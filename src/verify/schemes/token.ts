import { z } from "zod";
import type { RawRequest } from "../../event/received.ts";
import { queryValues } from "../../event/values.ts";
import { checkSettings } from "../../lib/check-settings.ts";
import { isSecretIn } from "../../lib/constant-time.ts";
import { ok } from "../../lib/result.ts";
import { compileSource, compileTexts, headerText, RequestView } from "../message/request-view.ts";
import { consumedBy } from "../message/signature.ts";
import { findWrongName, nameField } from "../message/source.ts";
import { defineScheme, reject } from "../verifier.ts";

const shape = z.strictObject({
  scheme: z
    .literal("token")
    .describe("The secret itself comes with each delivery; anyone who sees one can send others."),
  in: z
    .enum(["header", "bearer", "basic", "query", "body"])
    .default("header")
    .describe(
      "Where it stands: a header; `Authorization: Bearer`, or in its place the query parameter access_token; `Authorization: Basic`, of which the secret is user:password; a query parameter; the body. A channel's address has no further path: it is a credential itself.",
    ),
  name: nameField
    .optional()
    .describe(
      "The header (any case), query parameter, or path in the body ($.token; of a form, $.field); where a path yields several values, each must be right. Of bearer and basic: absent.",
    ),
  prefix: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe("What stands before it in the header, such as `Token `."),
});

export type TokenSettings = z.output<typeof shape>;

const settings = shape
  .check(
    checkSettings(({ in: where, name, prefix }, note) => {
      const isAuthorization = where === "bearer" || where === "basic";
      if (isAuthorization && name !== undefined)
        note("name", `is Authorization where \`in\` is ${where}: leave it out`);
      if (!isAuthorization) {
        const wrong = name === undefined ? "is needed" : findWrongName(where, name);
        if (wrong !== undefined) note("name", wrong);
      }
      if (prefix !== undefined && where !== "header")
        note("prefix", "stands only before a token in a header");
    }),
  )
  .describe("A shared secret that is sent along.");

/**
 * A shared secret that comes with each delivery. Digests are compared, not texts: neither the length nor how much of it is right
 * shows in the time that it takes.
 */
export const token = defineScheme({
  scheme: "token",
  settings,
  needsSecret: true,
  create(options) {
    const read = compileReader(options);
    const { in: where, name = "authorization" } = options;
    const missing = reject("missing", `the token in ${where} ${name} is missing or repeated`);
    const mismatch = reject("mismatch", `the token in ${where} ${name} is not the channel's`);
    const place = {
      in: where === "query" || where === "body" ? where : "header",
      name,
      alsoNamed: [],
    } as const;
    return {
      ...consumedBy(place),
      ...(where === "bearer" ? { consumedQuery: [BEARER_PARAMETER] } : {}),
      verify(request, { secrets, readAs }) {
        const sent = read(request, readAs);
        if (sent === undefined || sent.length === 0) return missing;
        return sent.every((text) => isSecretIn(text, secrets)) ? ok({}) : mismatch;
      },
    };
  },
});

/** All tokens that a request brings; each must be right. Undefined where there is none that can be read. */
type ReadTokens = (request: RawRequest, readAs: string | undefined) => readonly string[] | undefined;

function compileReader({ in: where, name = "", prefix = "" }: TokenSettings): ReadTokens {
  const one = (text: string | undefined): readonly string[] | undefined =>
    text === undefined ? undefined : [text];
  switch (where) {
    case "bearer":
      return ({ headers, target }) => {
        const inHeader = /^bearer +(?<token>\S+)$/i.exec(headerText(headers.authorization) ?? "")?.groups
          ?.token;
        const inQuery = queryValues(target)[BEARER_PARAMETER];
        // RFC 6750 section 2: by one method, not by two.
        if (inQuery === undefined) return one(inHeader);
        return inHeader === undefined && typeof inQuery === "string" ? one(inQuery) : undefined;
      };
    case "basic":
      return ({ headers }) => one(basicCredentials(headerText(headers.authorization) ?? ""));
    case "body": {
      const texts = compileTexts(name);
      return (request, readAs) => texts(new RequestView(request, readAs));
    }
    case "header":
    case "query": {
      const source = compileSource({ in: where, name });
      return (request) => {
        const text = source(new RequestView(request));
        return one(text?.startsWith(prefix) ? text.slice(prefix.length) : undefined);
      };
    }
    default:
      return where satisfies never;
  }
}

/** `user:password` of RFC 7617, in UTF-8. */
function basicCredentials(header: string): string | undefined {
  const encoded = /^basic +(?<encoded>[A-Za-z0-9+/]+={0,2})$/i.exec(header)?.groups?.encoded;
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

/** RFC 6750 section 2.3, which HTTP webhooks for event delivery 1.0.2 ask targets to take (section 3.2). */
const BEARER_PARAMETER = "access_token";
