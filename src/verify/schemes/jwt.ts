import { ok } from "../../lib/result.ts";
import { parsePublicKeys } from "../keys/parse-keys.ts";
import { compileSource, RequestView } from "../message/request-view.ts";
import { consumedBy, refuse } from "../message/signature.ts";
import { findWrongKey } from "../secret-key.ts";
import { checkToken } from "../token/check-token.ts";
import { compileTokenKeys } from "../token/find-token-keys.ts";
import { isBySecret, type JwtSettings, jwtSettings } from "../token/jwt-settings.ts";
import { defineScheme } from "../verifier.ts";

/** Longer than any header that comes through. */
const MAX_TOKEN_LENGTH = 16_384;
const COMPACT = /^(?:bearer +)?(?<token>[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+)$/i;

/** A JSON Web Token in compact form (RFC 7515 section 7.1), signed by one of the algorithms that the settings name. */
export const jwt = defineScheme({
  scheme: "jwt",
  settings: jwtSettings,
  needsSecret: usesSecrets,
  findWrongSecret: ({ keys, key, algorithms }, secret) => {
    if (keys.from !== "secrets") return undefined;
    if (isBySecret(algorithms)) return findWrongKey(key, secret);
    return parsePublicKeys(secret) === undefined ? "is no public key that can be read" : undefined;
  },
  create(options) {
    const read = compileSource(options.source);
    const { in: where, name } = options.source;
    const findKeys = compileTokenKeys(options.keys, options.key, isBySecret(options.algorithms));
    return {
      ...consumedBy({ in: where, name }),
      async verify(request, context) {
        if (usesSecrets(options) && context.secrets.length === 0) {
          return refuse("no_secret", "the channel has no secret that is valid now");
        }
        const text = read(new RequestView(request, context.readAs));
        if (text === undefined)
          return refuse("missing", `the token in ${where} ${name} is missing or repeated`);
        const token = text.length > MAX_TOKEN_LENGTH ? undefined : COMPACT.exec(text)?.groups?.token;
        if (token === undefined)
          return refuse("malformed", `what stands in ${where} ${name} is no signed token`);
        const checked = await checkToken(token, { settings: options, request, context, findKeys });
        return checked.ok ? ok(checked.value) : checked;
      },
    };
  },
});

/** As keys, or as what a claim must be. */
function usesSecrets({ keys, secretClaim }: JwtSettings): boolean {
  return keys.from === "secrets" || secretClaim !== undefined;
}
