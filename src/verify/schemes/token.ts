import { z } from "zod";
import type { RawRequest } from "../../event/received.ts";
import { checkFields } from "../../lib/check-fields.ts";
import { isEncodedSecretIn, isSecretIn } from "../../lib/constant-time.ts";
import { ok } from "../../lib/result.ts";
import { queryValues } from "../../lib/urlencoded.ts";
import { compileSource, compileTexts, consumedBy, RequestView } from "../message/request-view.ts";
import { findWrongName, nameField } from "../message/source.ts";
import { defineScheme, reject } from "../verifier.ts";

const shape = z.strictObject({
  scheme: z
    .literal("token")
    .describe(
      "The sender includes the secret in each delivery. Anyone who sees a delivery can forge others.",
    ),
  in: z
    .enum(["header", "bearer", "basic", "query", "body"])
    .default("header")
    .describe(
      "Location of the token: a header; `Authorization: Bearer` or the query parameter access_token; `Authorization: Basic`, with user:password as the secret; a query parameter; or the body. The URL path is not available, because the channel's address is itself a credential.",
    ),
  name: nameField
    .optional()
    .describe(
      "Name of the header (case-insensitive) or query parameter, or path in the body ($.token; for forms, $.field). If a path yields several values, every value must match. Not allowed with bearer and basic.",
    ),
  prefix: z
    .string()
    .min(1)
    .max(64)
    .optional()
    .describe("Text before the token in the header, such as `Token `."),
});

export type TokenConfig = z.output<typeof shape>;

const configSchema = shape
  .check(
    checkFields(({ in: where, name, prefix }, note) => {
      const isAuthorization = where === "bearer" || where === "basic";
      if (isAuthorization && name !== undefined)
        note("name", `is not allowed when \`in\` is ${where}, which always reads Authorization`);
      if (!isAuthorization) {
        const wrong = name === undefined ? "is required" : findWrongName(where, name);
        if (wrong !== undefined) note("name", wrong);
      }
      if (prefix !== undefined && where !== "header") note("prefix", "is only allowed when `in` is header");
    }),
  )
  .describe("Verifies a shared secret that the sender includes in each delivery.");

/**
 * Verifies a shared secret that the delivery contains. Compares digests, so that timing reveals neither the length of a secret nor
 * a matching prefix.
 */
export const token = defineScheme({
  scheme: "token",
  configSchema,
  needsSecret: true,
  findQueryGap: ({ in: where }) =>
    where === "body" ? { isForgeable: false, message: "the token is in the body" } : undefined,
  // The secret authenticates the sender of the whole request. Only a sender with the secret can change a part of a delivery.
  covers: () => true,
  create(options) {
    const read = compileReader(options);
    const { in: where, name = "authorization" } = options;
    const missing = reject("missing", `the token in ${where} ${name} is missing or repeated`);
    const mismatch = reject(
      "mismatch",
      `the token in ${where} ${name} does not match any secret of the channel`,
    );
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
        const isSecret = place.in === "header" ? isSecretIn : isEncodedSecretIn;
        return sent.every((text) => isSecret(text, secrets)) ? ok({}) : mismatch;
      },
    };
  },
});

/** Returns all tokens in a request, each of which must match a secret. Returns `undefined` if the request has no readable token. */
type ReadTokens = (request: RawRequest, readAs: string | undefined) => readonly string[] | undefined;

function compileReader({ in: where, name = "", prefix = "" }: TokenConfig): ReadTokens {
  const one = (text: string | undefined): readonly string[] | undefined =>
    text === undefined ? undefined : [text];
  switch (where) {
    case "bearer":
      return ({ headers, target }) => {
        const inHeader = /^bearer +(?<token>\S+)$/i.exec(textOf(headers.authorization))?.groups?.token;
        const inQuery = queryValues(target)[BEARER_PARAMETER];
        // RFC 6750 section 2 allows only one method per request, so reject a request with a token in both places.
        if (inQuery === undefined) return one(inHeader);
        return inHeader === undefined && typeof inQuery === "string" ? one(inQuery) : undefined;
      };
    case "basic":
      return ({ headers }) => one(basicCredentials(textOf(headers.authorization)));
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

const textOf = (value: RawRequest["headers"][string] | undefined): string =>
  typeof value === "string" ? value : "";

/** Returns HTTP Basic credentials (RFC 7617) as `user:password`, decoded as UTF-8. */
function basicCredentials(header: string): string | undefined {
  const encoded = /^basic +(?<encoded>[A-Za-z0-9+/]+={0,2})$/i.exec(header)?.groups?.encoded;
  return encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8");
}

/**
 * Query parameter with a bearer token (RFC 6750 section 2.3). "HTTP 1.1 Web Hooks for Event Delivery" 1.0.2, section 3.2, requires
 * receivers to accept it.
 */
const BEARER_PARAMETER = "access_token";
