import type * as OAuth from "oauth4webapi";
import { createRedact } from "../../lib/secrets/redact.ts";
import { OutboundError } from "../outbound.ts";
import { findServer, type IssuerFetch, loadOAuth, toLibraryOptions } from "./issuer.ts";
import type { OAuth2Config } from "./oauth2.ts";
import { readTokenResponse, type TokenAnswer, TokenRequestError } from "./token-response.ts";

export interface TokenCall {
  readonly fetch: IssuerFetch;
  readonly nowMs: number;
}

/**
 * Requests tokens with the refresh token (RFC 6749, section 6) or, if there is none, with the client credentials (section 4.4).
 *
 * @throws OutboundError if the issuer gives no conclusive response
 */
export async function requestTokens(
  config: OAuth2Config,
  refreshToken: string | undefined,
  call: TokenCall,
): Promise<TokenAnswer> {
  const server = await findServer(config, call.fetch);
  const client = { client_id: config.clientId };
  const asked = [server, client, clientAuthentication(config)] as const;
  const parameters = tokenParameters(config);
  const options = toLibraryOptions(call.fetch);
  if (refreshToken !== undefined) {
    const request = { ...options, additionalParameters: parameters };
    return readAnswer(config, [refreshToken], call, () =>
      loadOAuth().refreshTokenGrantRequest(...asked, refreshToken, request),
    );
  }
  if (config.scopes.length > 0) parameters.set("scope", config.scopes.join(" "));
  const answer = await readAnswer(config, [], call, () =>
    loadOAuth().clientCredentialsGrantRequest(...asked, parameters, options),
  );
  // This grant needs no refresh token (RFC 6749, section 4.4.3), and its next token is requested in the same way.
  return answer.kind === "tokens"
    ? { ...answer, tokens: { ...answer.tokens, refreshToken: undefined } }
    : { ...answer, refreshToken: undefined };
}

/** Exchanges the code in an OAuth callback for tokens (RFC 6749, section 4.1.3). Validate `callback` first. */
export function exchangeCode(
  config: OAuth2Config,
  { server, callback, redirectUri, verifier }: CodeExchange,
  call: TokenCall,
): Promise<TokenAnswer> {
  return readAnswer(config, [callback.get("code") ?? "", verifier], call, () =>
    loadOAuth().authorizationCodeGrantRequest(
      server,
      { client_id: config.clientId },
      clientAuthentication(config),
      callback,
      redirectUri,
      verifier,
      { ...toLibraryOptions(call.fetch), additionalParameters: tokenParameters(config) },
    ),
  );
}

interface CodeExchange {
  readonly server: OAuth.AuthorizationServer;
  readonly callback: URLSearchParams;
  readonly redirectUri: string;
  readonly verifier: string;
}

/** Network failures after which the issuer may have processed the request. */
const UNCERTAIN_FAILURES: readonly string[] = ["timeout", "reset", "tooLarge", "protocol"];

/**
 * Sends a token request and reads the response.
 *
 * @param secrets secrets of the request that texts of the issuer may repeat
 */
async function readAnswer(
  { clientSecret = "", tokenTypes }: OAuth2Config,
  secrets: readonly string[],
  { nowMs }: TokenCall,
  send: () => Promise<Response>,
): Promise<TokenAnswer> {
  const response = await send().catch((error: unknown) => {
    if (error instanceof OutboundError)
      throw new TokenRequestError(error.code, error.message, UNCERTAIN_FAILURES.includes(error.code));
    // Errors of the OAuth library are not wrapped, because they may contain tokens.
    throw new OutboundError("protocol", "the issuer publishes no valid token endpoint; set tokenEndpoint");
  });
  const { status } = response;
  const redact = createRedact([clientSecret, ...secrets]);
  return readTokenResponse({ status, text: await response.text() }, { nowMs, tokenTypes, redact });
}

function tokenParameters({ audience, resource, tokenParameters: more }: OAuth2Config): URLSearchParams {
  return new URLSearchParams({
    ...(audience !== undefined && { audience }),
    ...(resource !== undefined && { resource }),
    ...more,
  });
}

function clientAuthentication({ clientAuthentication: method, clientSecret = "" }: OAuth2Config) {
  const oauth = loadOAuth();
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
