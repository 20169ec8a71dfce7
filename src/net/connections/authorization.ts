import * as oauth from "oauth4webapi";
import { OutboundError } from "../outbound.ts";
import { isCallable } from "../redirects.ts";
import type { OAuth2Settings } from "./oauth2.ts";
import { exchangeCode, type Fetch, findServer, type TokenAnswer, type TokenCall } from "./token-endpoint.ts";

/** Where a person is sent to give an authorization, and what must be known when they come back. */
export interface AuthorizationRequest {
  readonly url: string;
  /** Of PKCE (RFC 7636): secret. */
  readonly verifier: string;
}

/**
 * The authorization request (RFC 6749, section 4.1.1) with PKCE by S256.
 *
 * @throws OutboundError where the issuer's endpoints cannot be found.
 */
export async function authorizationRequest(
  settings: OAuth2Settings,
  { state, redirectUri }: { readonly state: string; readonly redirectUri: string },
  fetch: Fetch,
): Promise<AuthorizationRequest> {
  const server = await findServer(settings, fetch);
  const url = URL.parse(server.authorization_endpoint ?? "");
  // A browser will be sent there: not to a script, whatever the issuer publishes.
  if (url === null || !isCallable(url)) {
    throw new OutboundError("protocol", "the issuer publishes no authorization endpoint");
  }
  const verifier = oauth.generateRandomCodeVerifier();
  const { clientId, scopes, audience, resource, authorizationParameters } = settings;
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
 * The result of a callback. `denied`: the issuer, or the person there, said no. `strange`: it is not the issuer's that was asked.
 * `issuerNeeded`: it says whose it is, and the settings do not say whose it should be.
 */
export type CallbackAnswer = TokenAnswer | { readonly kind: "denied" | "strange" | "issuerNeeded" };

/**
 * Turns a callback's parameters into tokens. Whose answer it is is told by `iss` (RFC 9207), which must be the issuer's name where
 * it is there or promised: a code of one issuer is never shown to another.
 *
 * @throws OutboundError
 */
export async function finishAuthorization(
  settings: OAuth2Settings,
  given: {
    readonly parameters: URLSearchParams;
    readonly state: string;
    readonly redirectUri: string;
    readonly verifier: string;
  },
  call: TokenCall,
): Promise<CallbackAnswer> {
  if (settings.issuer === undefined && given.parameters.has("iss")) return { kind: "issuerNeeded" };
  const server = await findServer(settings, call.fetch);
  let callback: URLSearchParams;
  try {
    callback = oauth.validateAuthResponse(
      server,
      { client_id: settings.clientId },
      given.parameters,
      given.state,
    );
  } catch (error) {
    return { kind: error instanceof oauth.AuthorizationResponseError ? "denied" : "strange" };
  }
  if (!callback.has("code")) return { kind: "strange" };
  return exchangeCode(settings, { ...given, server, callback }, call);
}
