import { OutboundError } from "../outbound.ts";
import { isCallable } from "../redirects.ts";
import { findServer, type IssuerFetch, loadOAuth } from "./issuer.ts";
import type { OAuth2Config } from "./oauth2.ts";
import { exchangeCode, type TokenCall } from "./token-endpoint.ts";
import type { TokenAnswer } from "./token-response.ts";

export interface AuthorizationRequest {
  readonly url: string;
  /** PKCE code verifier (RFC 7636). Must be kept secret. */
  readonly verifier: string;
}

/**
 * Creates an OAuth authorization request (RFC 6749, section 4.1.1) with PKCE (method S256).
 *
 * @throws OutboundError if the endpoints of the issuer cannot be discovered
 */
export async function authorizationRequest(
  config: OAuth2Config,
  { state, redirectUri }: { readonly state: string; readonly redirectUri: string },
  fetch: IssuerFetch,
): Promise<AuthorizationRequest> {
  const server = await findServer(config, fetch);
  const url = URL.parse(server.authorization_endpoint ?? "");
  // Reject schemes such as `javascript:`, because a browser will open this URL and it may come from the issuer's metadata.
  if (url === null || !isCallable(url)) {
    throw new OutboundError(
      "protocol",
      "the issuer publishes no valid authorization endpoint; set authorizationEndpoint",
    );
  }
  const oauth = loadOAuth();
  const verifier = oauth.generateRandomCodeVerifier();
  const { clientId, scopes, audience, resource, authorizationParameters } = config;
  const parameters = {
    ...authorizationParameters,
    ...(scopes.length > 0 && { scope: scopes.join(" ") }),
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    response_type: "code",
    client_id: clientId,
    redirect_uri: redirectUri,
    state,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  };
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return { url: url.href, verifier };
}

/**
 * Result of an OAuth callback.
 *
 * - `denied`: the issuer or the person rejected the request.
 * - `strange`: the callback does not come from the expected issuer.
 * - `issuerNeeded`: the callback names its issuer, but the config contains no `issuer` to compare it with.
 */
export type CallbackAnswer = TokenAnswer | { readonly kind: "denied" | "strange" | "issuerNeeded" };

/**
 * Exchanges the code in an OAuth callback for tokens. If the issuer identifies itself with `iss` (RFC 9207), its name must match,
 * so that no code is sent to a different issuer.
 *
 * @throws OutboundError
 */
export async function finishAuthorization(
  config: OAuth2Config,
  given: {
    readonly parameters: URLSearchParams;
    readonly state: string;
    readonly redirectUri: string;
    readonly verifier: string;
  },
  call: TokenCall,
): Promise<CallbackAnswer> {
  if (config.issuer === undefined && given.parameters.has("iss")) return { kind: "issuerNeeded" };
  const server = await findServer(config, call.fetch);
  const oauth = loadOAuth();
  let callback: URLSearchParams;
  try {
    callback = oauth.validateAuthResponse(
      server,
      { client_id: config.clientId },
      given.parameters,
      given.state,
    );
  } catch (error) {
    return { kind: error instanceof oauth.AuthorizationResponseError ? "denied" : "strange" };
  }
  if (!callback.has("code")) return { kind: "strange" };
  return exchangeCode(config, { ...given, server, callback }, call);
}
