import { z } from "zod";
import { invalidParameters } from "../../../http/problem.ts";
import { oauth2 } from "../../../net/connections/oauth2.ts";
import { type Fetch, findSelfNamingIssuer } from "../../../net/connections/token-endpoint.ts";

/** After this time, the check is skipped. The callback then checks whether the issuer's name is required. */
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
 * Requires `config.issuer` if the issuer's metadata announces that its callbacks contain its name (RFC 9207). Without it, the callback
 * cannot be verified and the authorization would fail. The check ensures that a code of one issuer is never sent to another.
 *
 * @throws ApiError 400 if the issuer's metadata announces this and `issuer` is not set
 */
export async function requireIssuer(connection: unknown, fetch: Fetch): Promise<void> {
  const parsed = withoutIssuer.safeParse(connection);
  if (!parsed.success) return;
  const signal = AbortSignal.timeout(DISCOVERY_TIMEOUT_MS);
  const issuer = await findSelfNamingIssuer(parsed.data.config.authorizationEndpoint, fetch, { signal });
  if (issuer === undefined) return;
  const message = `is required, because this issuer's callbacks contain its name (RFC 9207): ${JSON.stringify(issuer)}`;
  throw invalidParameters([{ path: "config.issuer", message }]);
}
