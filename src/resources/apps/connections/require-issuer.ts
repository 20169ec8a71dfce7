import { z } from "zod";
import { invalidParameters } from "../../../http/errors.ts";
import { findSelfNamingIssuer, type IssuerFetch } from "../../../net/connections/issuer.ts";
import { oauth2 } from "../../../net/connections/oauth2.ts";

/** Maximum time to load the issuer's metadata, in ms. After that, the check is left to the OAuth callback. */
const DISCOVERY_TIMEOUT_MS = 5_000;

const withoutIssuer = z.object({
  kind: z.literal(oauth2.kind),
  config: z.object({
    grant: z.literal("authorizationCode"),
    issuer: z.undefined().optional(),
    authorizationEndpoint: z.url(),
  }),
});

/**
 * Requires `config.issuer` if the issuer's metadata says that its callbacks contain the issuer's name (RFC 9207). The callback compares
 * both names, so that a code from one issuer is never sent to another. Without `config.issuer`, the authorization would fail there.
 *
 * @throws ApiError 400 if `config.issuer` is required but missing
 */
export async function requireIssuer(connection: unknown, fetch: IssuerFetch): Promise<void> {
  const parsed = withoutIssuer.safeParse(connection);
  if (!parsed.success) return;
  const signal = AbortSignal.timeout(DISCOVERY_TIMEOUT_MS);
  const issuer = await findSelfNamingIssuer(parsed.data.config.authorizationEndpoint, fetch, { signal });
  if (issuer === undefined) return;
  const message = `is required, because this issuer's callbacks contain its name (RFC 9207): ${JSON.stringify(issuer)}`;
  throw invalidParameters([{ path: "config.issuer", message }]);
}
