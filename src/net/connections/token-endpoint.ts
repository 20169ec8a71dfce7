import * as oauth from "oauth4webapi";
import { OutboundError } from "../outbound.ts";
import type { OAuth2Config } from "./oauth2.ts";

export type Fetch = typeof globalThis.fetch;

export interface Tokens {
  readonly accessToken: string;
  /** Time from which the token must be renewed before use, in ms since 1970. `undefined` if the issuer states no lifetime. */
  readonly renewAtMs: number | undefined;
  readonly refreshToken: string | undefined;
}

/**
 * Result of a token request.
 *
 * - `dead`: the issuer permanently rejects the grant.
 * - `refused`: the issuer rejects the client or the parameters. `code` is the issuer's error code.
 */
export type TokenAnswer =
  | { readonly kind: "tokens"; readonly tokens: Tokens }
  | { readonly kind: "dead" | "refused"; readonly code: string };

export interface TokenCall {
  readonly fetch: Fetch;
  readonly nowMs: number;
}

/** Time in ms before its expiry at which a token is renewed. For short lifetimes, a fifth of the lifetime applies instead. */
const RENEW_BEFORE_MS = 60_000;
const MAX_LIFE_SECONDS = 365 * 86_400;

/**
 * Error codes for a permanently rejected grant. The first one is standard (RFC 6749, section 5.2), and a large issuer uses the
 * second.
 */
const DEAD_GRANT_ERRORS: readonly string[] = ["invalid_grant", "bad_refresh_token"];
/** Error codes of temporary failures. Some issuers send these codes with the HTTP status of a permanent rejection. */
const TRANSIENT_ERRORS: readonly string[] = ["server_error", "slow_down", "temporarily_unavailable"];

/**
 * Requests tokens with the refresh token (RFC 6749, section 6) or, if there is none, with the client credentials (section 4.4).
 *
 * @throws OutboundError if the issuer gives no conclusive response
 */
export function requestTokens(
  config: OAuth2Config,
  refreshToken: string | undefined,
  call: TokenCall,
): Promise<TokenAnswer> {
  return callTokenEndpoint(call, async (options) => {
    const server = await findServer(config, call.fetch);
    const client = { client_id: config.clientId };
    const asked = [server, client, clientAuthentication(config)] as const;
    const parameters = tokenParameters(config);
    if (refreshToken === undefined) {
      if (config.scopes.length > 0) parameters.set("scope", config.scopes.join(" "));
      const response = await oauth.clientCredentialsGrantRequest(...asked, parameters, options);
      const answer = await oauth.processClientCredentialsResponse(server, client, response);
      const { refresh_token: _, ...given } = answer;
      return given;
    }
    const request = { ...options, additionalParameters: parameters };
    const response = await oauth.refreshTokenGrantRequest(...asked, refreshToken, request);
    return oauth.processRefreshTokenResponse(server, client, response);
  });
}

/** Exchanges the code in an OAuth callback for tokens (RFC 6749, section 4.1.3). Validate `callback` first. */
export function exchangeCode(
  config: OAuth2Config,
  { server, callback, redirectUri, verifier }: CodeExchange,
  call: TokenCall,
): Promise<TokenAnswer> {
  return callTokenEndpoint(call, async (options) => {
    const client = { client_id: config.clientId };
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      clientAuthentication(config),
      callback,
      redirectUri,
      verifier,
      { ...options, additionalParameters: tokenParameters(config) },
    );
    return oauth.processAuthorizationCodeResponse(server, client, response);
  });
}

interface CodeExchange {
  readonly server: oauth.AuthorizationServer;
  readonly callback: URLSearchParams;
  readonly redirectUri: string;
  readonly verifier: string;
}

/**
 * Returns the endpoints of the issuer from the config, or else from the issuer's metadata (OpenID Connect Discovery 1.0, RFC 8414).
 *
 * @throws OutboundError
 */
export async function findServer(config: OAuth2Config, fetch: Fetch): Promise<oauth.AuthorizationServer> {
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
  fetch: Fetch,
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

async function discover(issuer: URL, fetch: Fetch, signal?: AbortSignal): Promise<oauth.AuthorizationServer> {
  const options = {
    [oauth.customFetch]: toLibraryFetch(fetch),
    [oauth.allowInsecureRequests]: true,
    ...(signal !== undefined && { signal }),
  };
  let last: unknown;
  for (const algorithm of ["oidc", "oauth2"] as const) {
    const response = await oauth.discoveryRequest(issuer, { ...options, algorithm });
    try {
      return await oauth.processDiscoveryResponse(issuer, response);
    } catch (error) {
      last = error;
      await response.body?.cancel().catch(() => {});
    }
  }
  throw new OutboundError(
    "protocol",
    "the issuer publishes no valid metadata; check issuer, or set the endpoints",
    { cause: last },
  );
}

async function callTokenEndpoint(
  { fetch, nowMs }: TokenCall,
  ask: (options: oauth.TokenEndpointRequestOptions) => Promise<oauth.TokenEndpointResponse>,
): Promise<TokenAnswer> {
  try {
    // Allow http here, because the config and the address check decide whether TLS is required.
    const options = {
      [oauth.customFetch]: toLibraryFetch(normalizeResponses(fetch)),
      [oauth.allowInsecureRequests]: true,
    };
    const given = await ask(options);
    const renewAtMs = computeRenewAt(nowMs, given.expires_in);
    const tokens = { accessToken: given.access_token, refreshToken: given.refresh_token, renewAtMs };
    return { kind: "tokens", tokens };
  } catch (error) {
    if (error instanceof OutboundError) throw error;
    if (error instanceof oauth.ResponseBodyError && isFinal(error)) {
      return {
        kind: DEAD_GRANT_ERRORS.includes(error.error) ? "dead" : "refused",
        code: sanitizeCode(error.error),
      };
    }
    // Do not set `cause`, because errors of the OAuth library contain the whole response, including tokens.
    throw new OutboundError(
      "protocol",
      `the token endpoint returned no valid OAuth 2.0 response${formatErrorCode(error)}`,
    );
  }
}

function formatErrorCode(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" && /^[A-Z0-9_]{1,64}$/.test(code) ? ` (${code})` : "";
}

const isFinal = ({ error, status }: oauth.ResponseBodyError): boolean =>
  !TRANSIENT_ERRORS.includes(error) && status < 500 && status !== 429;

function computeRenewAt(nowMs: number, seconds: number | undefined): number | undefined {
  if (seconds === undefined) return undefined;
  const lifeMs = Math.min(seconds, MAX_LIFE_SECONDS) * 1_000;
  return nowMs + lifeMs - Math.min(RENEW_BEFORE_MS, lifeMs / 5);
}

/**
 * Returns the error code of an issuer, which users see. Returns `unknown_error` if the code does not have the form of a standard
 * code.
 */
const sanitizeCode = (code: string): string => (/^[a-z_]{1,64}$/.test(code) ? code : "unknown_error");

function tokenParameters({ audience, resource, tokenParameters: more }: OAuth2Config): URLSearchParams {
  return new URLSearchParams({
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...more,
  });
}

function clientAuthentication({ clientAuthentication: method, clientSecret = "" }: OAuth2Config) {
  switch (method) {
    case "client_secret_basic":
      return oauth.ClientSecretBasic(clientSecret);
    case "client_secret_post":
      return oauth.ClientSecretPost(clientSecret);
    case "none":
      return oauth.None();
    default:
      return method satisfies never;
  }
}

interface LibraryRequest extends Pick<RequestInit, "headers" | "method" | "redirect" | "signal"> {
  readonly body?: URLSearchParams | undefined;
}

const toLibraryFetch =
  (fetch: Fetch) =>
  (url: string, { body, ...init }: LibraryRequest): Promise<Response> =>
    fetch(url, { ...init, ...(body && { body }) });

/**
 * Wraps `fetch` so that the OAuth library accepts responses that violate the standard. A rejected response could mean the loss of
 * a rotated refresh token.
 *
 * - Removes the ID token, which Inlet does not use.
 * - Changes the status of an error response from 200 to 400, because some issuers send errors with 200.
 * - Removes the header `WWW-Authenticate`, because with it the library would ignore the error in the body.
 */
function normalizeResponses(fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const text = await response.text();
    const { status, headers } = response;
    const parsed = parseObject(text);
    if (parsed === undefined) return new Response(text, { status, headers: getContentType(headers) });
    const { id_token: _, ...body } = parsed;
    const isError = status === 200 && typeof body.error === "string" && body.access_token === undefined;
    return Response.json(body, { status: isError ? 400 : status });
  };
}

const getContentType = (headers: Headers): Record<string, string> => ({
  "content-type": headers.get("content-type") ?? "text/plain",
});

function parseObject(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
