import * as oauth from "oauth4webapi";
import { OutboundError } from "../outbound.ts";
import type { OAuth2Settings } from "./oauth2.ts";

/** Fits `Outbound.fetch`. */
export type Fetch = typeof globalThis.fetch;

/** Tokens as an issuer gave them. */
export interface Tokens {
  readonly accessToken: string;
  /** From when on it is to be renewed before use, in ms; undefined where the issuer does not say how long it lasts. */
  readonly renewAtMs: number | undefined;
  readonly refreshToken: string | undefined;
}

/** `dead`: the grant is refused for good. `refused`: the client or what it asks for is. `code` is the issuer's. */
export type TokenAnswer =
  | { readonly kind: "tokens"; readonly tokens: Tokens }
  | { readonly kind: "dead" | "refused"; readonly code: string };

export interface TokenCall {
  readonly fetch: Fetch;
  readonly nowMs: number;
}

/** A token is renewed so long before its end, or a fifth of its life before where that is less. */
const RENEW_BEFORE_MS = 60_000;
const MAX_LIFE_SECONDS = 365 * 86_400;

/** Of a dead grant (RFC 6749, section 5.2), and what a large issuer says instead. */
const DEAD: readonly string[] = ["invalid_grant", "bad_refresh_token"];
/** Errors that pass, though some issuers answer them as refusals. */
const PASSING: readonly string[] = ["server_error", "slow_down", "temporarily_unavailable"];

/**
 * Asks for tokens: with a refresh token where there is one, else as the client alone (RFC 6749, sections 6 and 4.4).
 *
 * @throws OutboundError where the issuer gave no answer that settles it.
 */
export function requestTokens(
  settings: OAuth2Settings,
  refreshToken: string | undefined,
  call: TokenCall,
): Promise<TokenAnswer> {
  return settle(call, async (options) => {
    const server = await findServer(settings, call.fetch);
    const client = { client_id: settings.clientId };
    const asked = [server, client, clientAuthentication(settings)] as const;
    const parameters = tokenParameters(settings);
    if (refreshToken === undefined) {
      if (settings.scopes.length > 0) parameters.set("scope", settings.scopes.join(" "));
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

/** Exchanges the code that a callback brought (RFC 6749, section 4.1.3). @param callback as `checkCallback` gave it */
export function exchangeCode(
  settings: OAuth2Settings,
  { server, callback, redirectUri, verifier }: CodeExchange,
  call: TokenCall,
): Promise<TokenAnswer> {
  return settle(call, async (options) => {
    const client = { client_id: settings.clientId };
    const response = await oauth.authorizationCodeGrantRequest(
      server,
      client,
      clientAuthentication(settings),
      callback,
      redirectUri,
      verifier,
      { ...options, additionalParameters: tokenParameters(settings) },
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
 * The issuer's endpoints: as they are set, else as it publishes them (OpenID Connect Discovery 1.0; RFC 8414).
 *
 * @throws OutboundError
 */
export async function findServer(settings: OAuth2Settings, fetch: Fetch): Promise<oauth.AuthorizationServer> {
  const { issuer, tokenEndpoint, authorizationEndpoint, grant } = settings;
  const set = {
    ...(tokenEndpoint !== undefined && { token_endpoint: tokenEndpoint }),
    ...(authorizationEndpoint !== undefined && { authorization_endpoint: authorizationEndpoint }),
  };
  const suffices =
    tokenEndpoint !== undefined && (grant !== "authorizationCode" || authorizationEndpoint !== undefined);
  // One without a name answers callbacks without one.
  if (suffices || issuer === undefined) return { issuer: issuer ?? NAMELESS, ...set };
  return { ...(await discover(new URL(issuer), fetch)), ...set };
}

/** No issuer's name: an issuer that names itself in a callback is another one. */
const NAMELESS = "urn:inlet:issuer:unnamed";

/** Above an authorization endpoint, so many addresses may be its issuer's name. */
const MAX_CANDIDATES = 6;

/**
 * The issuer of an authorization endpoint, if it publishes metadata of that endpoint and says there that it names itself in its answers
 * (RFC 9207, section 3). Its name is looked for at the address of the endpoint and all above it; an issuer that cannot be asked has none.
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
    [oauth.customFetch]: asLibrary(fetch),
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
  throw new OutboundError("protocol", "the issuer publishes no metadata of its own", { cause: last });
}

async function settle(
  { fetch, nowMs }: TokenCall,
  ask: (options: oauth.TokenEndpointRequestOptions) => Promise<oauth.TokenEndpointResponse>,
): Promise<TokenAnswer> {
  try {
    // The settings and the guard decide on TLS.
    const options = { [oauth.customFetch]: asLibrary(plainly(fetch)), [oauth.allowInsecureRequests]: true };
    const given = await ask(options);
    const renewAtMs = renewAt(nowMs, given.expires_in);
    const tokens = { accessToken: given.access_token, refreshToken: given.refresh_token, renewAtMs };
    return { kind: "tokens", tokens };
  } catch (error) {
    if (error instanceof OutboundError) throw error;
    if (error instanceof oauth.ResponseBodyError && isFinal(error)) {
      return { kind: DEAD.includes(error.error) ? "dead" : "refused", code: shown(error.error) };
    }
    // Not as the cause: the library's errors hold the whole answer, tokens included.
    throw new OutboundError("protocol", `the token endpoint gives no answer of OAuth 2.0${reasonOf(error)}`);
  }
}

function reasonOf(error: unknown): string {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" && /^[A-Z0-9_]{1,64}$/.test(code) ? ` (${code})` : "";
}

const isFinal = ({ error, status }: oauth.ResponseBodyError): boolean =>
  !PASSING.includes(error) && status < 500 && status !== 429;

function renewAt(nowMs: number, seconds: number | undefined): number | undefined {
  if (seconds === undefined) return undefined;
  const lifeMs = Math.min(seconds, MAX_LIFE_SECONDS) * 1_000;
  return nowMs + lifeMs - Math.min(RENEW_BEFORE_MS, lifeMs / 5);
}

/** An issuer's own word is shown only where it looks like the codes of the standard. */
const shown = (code: string): string => (/^[a-z_]{1,64}$/.test(code) ? code : "unknown_error");

function tokenParameters({ audience, resource, tokenParameters: more }: OAuth2Settings): URLSearchParams {
  return new URLSearchParams({
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...more,
  });
}

function clientAuthentication({ clientAuthentication: method, clientSecret = "" }: OAuth2Settings) {
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

/** Arguments of a `fetch` by the library. */
interface LibraryRequest extends Pick<RequestInit, "headers" | "method" | "redirect" | "signal"> {
  readonly body?: URLSearchParams | undefined;
}

const asLibrary =
  (fetch: Fetch) =>
  (url: string, { body, ...init }: LibraryRequest): Promise<Response> =>
    fetch(url, { ...init, ...(body && { body }) });

/**
 * A token endpoint's answer without what the library would refuse the whole of it for, so that a refresh token which was changed
 * for a new one is not lost: an ID token, which names nobody here; an error that is called 200, as some issuers do; a challenge
 * that hides the error beside it.
 */
function plainly(fetch: Fetch): Fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const text = await response.text();
    const { status, headers } = response;
    const parsed = parseObject(text);
    if (parsed === undefined) return new Response(text, { status, headers: typeOf(headers) });
    const { id_token: _, ...body } = parsed;
    const isError = status === 200 && typeof body.error === "string" && body.access_token === undefined;
    return Response.json(body, { status: isError ? 400 : status });
  };
}

const typeOf = (headers: Headers): Record<string, string> => ({
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
