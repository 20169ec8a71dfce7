import { z } from "zod";
import { invalidParameters } from "../../../http/problem.ts";
import { oauth2 } from "../../../net/connections/oauth2.ts";
import { type Fetch, findSelfNamingIssuer } from "../../../net/connections/token-endpoint.ts";

/** An issuer that does not answer meanwhile is believed to say nothing; the callback asks again for its name. */
const PATIENCE_MS = 5_000;

const nameless = z.object({
  kind: z.literal(oauth2.kind),
  config: z.object({
    grant: z.literal("authorizationCode"),
    issuer: z.undefined().optional(),
    authorizationEndpoint: z.url(),
  }),
});

/**
 * Sees to it that a person's authorization can be finished: where the issuer will name itself in its answer, the connection must say
 * which name is right, for a code of one issuer must not be shown to another.
 *
 * @throws ApiError 400 where the issuer's metadata says that it does, and `issuer` is not set
 */
export async function requireIssuer(connection: unknown, fetch: Fetch): Promise<void> {
  const parsed = nameless.safeParse(connection);
  if (!parsed.success) return;
  const signal = AbortSignal.timeout(PATIENCE_MS);
  const issuer = await findSelfNamingIssuer(parsed.data.config.authorizationEndpoint, fetch, { signal });
  if (issuer === undefined) return;
  const message = `is required: this issuer names itself in its answers (RFC 9207), as ${JSON.stringify(issuer)}`;
  throw invalidParameters([{ path: "config.issuer", message }]);
}
