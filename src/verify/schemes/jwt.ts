import { createSecretKey } from "node:crypto";
import { areKeysFetched, compileKeys } from "../keys/find-keys.ts";
import { type PublicKey, parsePublicKeys, toPublicKey } from "../keys/parse-keys.ts";
import { compileSource, consumedBy, RequestView } from "../message/request-view.ts";
import { deriveKey, findWrongKey } from "../secret-key.ts";
import { checkToken } from "../token/check-token.ts";
import { jwtConfigSchema, usesSharedSecrets } from "../token/jwt-config.ts";
import { defineScheme, reject } from "../verifier.ts";

/** Maximum length of a token in characters. Exceeds the length of any header that Node accepts. */
const MAX_TOKEN_LENGTH = 16_384;
const COMPACT = /^(?:bearer +)?(?<token>[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/i;

/** Verifies a JSON Web Token in compact form (RFC 7515 section 7.1) that is signed with one of the configured algorithms. */
export const jwt = defineScheme({
  scheme: "jwt",
  configSchema: jwtConfigSchema,
  // The secret is needed as the verification key, or as the value that a claim must have.
  needsSecret: ({ keys, secretClaim }) => keys.from === "secrets" || secretClaim !== undefined,
  findWrongSecret: ({ keys, key, algorithms }, secret) => {
    if (keys.from !== "secrets") return undefined;
    if (usesSharedSecrets(algorithms)) return findWrongKey(key, secret);
    return parsePublicKeys(secret) === undefined ? "must be a public key in a supported format" : undefined;
  },
  findQueryGap({ source, bodyHash }) {
    if (source.in === "body") return { isForgeable: false, message: "the token is in the body" };
    return bodyHash === undefined || bodyHash.ofQuery !== undefined
      ? undefined
      : { isForgeable: true, message: "the token covers only the body: set `verification.bodyHash.ofQuery`" };
  },
  // A token without a hash authenticates the sender of the whole request.
  covers: ({ bodyHash }, place) =>
    bodyHash === undefined || place.in === "body" || (place.in === "query" && bodyHash.ofQuery !== undefined),
  create(options) {
    const read = compileSource(options.source);
    const { in: where, name } = options.source;
    const asKey = (secret: string): readonly PublicKey[] | undefined => {
      const bytes = deriveKey(options.key, secret);
      return bytes && [toPublicKey(createSecretKey(bytes))];
    };
    const findKeys = compileKeys(
      options.keys,
      usesSharedSecrets(options.algorithms) ? asKey : parsePublicKeys,
    );
    return {
      ...consumedBy({ in: where, name }),
      fetchesKeys: areKeysFetched(options.keys),
      async verify(request, context) {
        const view = new RequestView(request, context.readAs);
        const text = read(view);
        if (text === undefined)
          return reject("missing", `the token in ${where} ${name} is missing or repeated`);
        const token = text.length > MAX_TOKEN_LENGTH ? undefined : COMPACT.exec(text)?.groups?.token;
        if (token === undefined)
          return reject("malformed", `the value in ${where} ${name} is not a signed token`);
        return checkToken(token, { config: options, view, context, findKeys });
      },
    };
  },
});
