import type * as OAuth from "oauth4webapi";
import { loadLibrary } from "../../lib/load-library.ts";
import { nameBlocked } from "../name-blocked.ts";
import { type Outbound, OutboundError } from "../outbound.ts";
import type { OAuth2Config } from "./oauth2.ts";

/** Loads the OAuth library when it is needed, because most gateways have no OAuth connections. */
export const loadOAuth = () => loadLibrary<typeof OAuth>("oauth4webapi");

/** Sends a request of the OAuth library, and returns the complete response. */
export type IssuerFetch = (
  url: string,
  request: OAuth.CustomFetchOptions<string, URLSearchParams | undefined>,
) => Promise<Response>;

/** Limits of a request to an issuer. They are shorter than the lock on a token renewal. */
const LIMITS = {
  connectTimeoutMs: 10_000,
  headTimeoutMs: 15_000,
  totalTimeoutMs: 15_000,
  maxBytes: 1024 * 1024,
  maxRedirects: 0,
} as const;

/** Used if the OAuth library passes no signal. */
const NEVER = new AbortController().signal;

/**
 * Creates the HTTP client for requests to OAuth issuers. It throws `OutboundError` if a request fails or is redirected, or the reason of the
 * request's signal.
 */
export const createIssuerFetch =
  (outbound: Pick<Outbound, "request">): IssuerFetch =>
  async (url, { method, headers, body, signal = NEVER }) => {
    const sent = { method, url, headers, ...(body && { body: body.toString() }) };
    const answer = await nameBlocked("`issuer` or an endpoint of the connection", url, () =>
      outbound.request(sent, { ...LIMITS, signal }),
    );
    const { status } = answer;
    if (status > 599) throw new OutboundError("protocol", `the server sent the invalid status ${status}`);
    // A web response must not have a body with these statuses (Fetch standard, "null body status").
    const hasBody = ![101, 204, 205, 304].includes(status);
    return new Response(hasBody ? new Uint8Array(answer.body) : null, {
      status,
      headers: Object.entries(answer.headers).map(([name, value]): [string, string] => [name, String(value)]),
    });
  };

/** Returns options for the OAuth library. They allow http, because the config and the address check decide whether TLS is required. */
export function toLibraryOptions(fetch: IssuerFetch) {
  const { customFetch, allowInsecureRequests } = loadOAuth();
  return { [customFetch]: fetch, [allowInsecureRequests]: true };
}

/**
 * Returns the endpoints of the issuer from the config, or else from the issuer's metadata (OpenID Connect Discovery 1.0, RFC 8414).
 *
 * @throws OutboundError
 */
export async function findServer(
  config: OAuth2Config,
  fetch: IssuerFetch,
): Promise<OAuth.AuthorizationServer> {
  const { issuer, tokenEndpoint, authorizationEndpoint, grant } = config;
  const set = {
    ...(tokenEndpoint !== undefined && { token_endpoint: tokenEndpoint }),
    ...(authorizationEndpoint !== undefined && { authorization_endpoint: authorizationEndpoint }),
  };
  const suffices =
    tokenEndpoint !== undefined && (grant !== "authorizationCode" || authorizationEndpoint !== undefined);
  // Use a placeholder if the config names no issuer. No callback can contain the placeholder, so a callback that names an issuer is
  // rejected.
  if (suffices || issuer === undefined) return { issuer: issuer ?? UNNAMED_ISSUER, ...set };
  return { ...(await discover(new URL(issuer), fetch)), ...set };
}

/** Placeholder for the name of an unknown issuer. It never equals an issuer name in a callback. */
const UNNAMED_ISSUER = "urn:inlet:issuer:unnamed";

/** Maximum number of URLs to try when the name of an issuer is unknown. */
const MAX_CANDIDATES = 6;

/**
 * Finds the name of the issuer to which an authorization endpoint belongs. Tries the endpoint's origin and its path prefixes. The
 * metadata under that name must contain the endpoint, and announce that callbacks contain `iss` (RFC 9207, section 3). If the
 * request for the metadata fails, the name does not count as an issuer.
 */
export async function findSelfNamingIssuer(
  authorizationEndpoint: string,
  fetch: IssuerFetch,
  { signal }: { readonly signal: AbortSignal },
): Promise<string | undefined> {
  const { origin, pathname } = new URL(authorizationEndpoint);
  const parts = pathname.split("/").slice(1, MAX_CANDIDATES);
  const candidates = parts.map((_, count) => new URL(`${origin}/${parts.slice(0, count).join("/")}`));
  const servers = await Promise.all(
    candidates.map((candidate) => discover(candidate, fetch, signal).catch(() => undefined)),
  );
  return servers.find(
    (server) =>
      server?.authorization_response_iss_parameter_supported === true &&
      server.authorization_endpoint?.replace(/\?.*/s, "") === origin + pathname,
  )?.issuer;
}

async function discover(
  issuer: URL,
  fetch: IssuerFetch,
  signal?: AbortSignal,
): Promise<OAuth.AuthorizationServer> {
  const oauth = loadOAuth();
  const options = { ...toLibraryOptions(fetch), ...(signal !== undefined && { signal }) };
  let reason: string | undefined;
  for (const algorithm of ["oidc", "oauth2"] as const) {
    const response = await oauth.discoveryRequest(issuer, { ...options, algorithm });
    try {
      return await oauth.processDiscoveryResponse(issuer, response);
    } catch (error) {
      // The first address may have metadata with a mistake, while the second one has none.
      if (reason === undefined || response.status === 200) reason = describeMistake(response.status, error);
    }
  }
  const message = `the issuer publishes no valid metadata (${reason}); check issuer, or set the endpoints`;
  throw new OutboundError("protocol", message);
}

/** Describes why a response contains no metadata of the issuer. The most frequent mistake is another spelling of its name. */
function describeMistake(status: number, error: unknown): string {
  if (status !== 200) return `status ${status}`;
  const { body } = ((error ?? {}) as { cause?: { body?: { issuer?: unknown } } }).cause ?? {};
  return typeof body?.issuer === "string"
    ? `it names the issuer ${JSON.stringify(body.issuer.slice(0, MAX_NAME_CHARS))}`
    : "the response is not JSON metadata";
}

const MAX_NAME_CHARS = 200;
