import * as oauth from "oauth4webapi";
import { exchange } from "./session.ts";
import type { Token } from "./tabs.ts";

/** Settings of the OpenID Connect issuer, from `/console/settings.json`. */
export interface IssuerSettings {
  readonly issuer: string;
  readonly clientId: string;
  readonly audience: string;
}

/** State of a sign-in while the user is on the issuer's page. It contains no credential. */
interface Pending {
  readonly state: string;
  readonly verifier: string;
  readonly nonce: string;
  /** Console address to open after the sign-in. */
  readonly returnTo: string;
}

const PENDING = "inlet.sign-in";
const callbackUrl = (): string => `${location.origin}/console/callback`;

/** Allows an issuer without TLS, because an issuer on a developer's machine usually has no certificate. */
const allowHttp = ({ issuer }: IssuerSettings) => ({
  [oauth.allowInsecureRequests]: issuer.startsWith("http:"),
});

async function discover(settings: IssuerSettings): Promise<oauth.AuthorizationServer> {
  const issuer = new URL(settings.issuer);
  const response = await oauth.discoveryRequest(issuer, allowHttp(settings));
  return oauth.processDiscoveryResponse(issuer, response);
}

/** Opens the issuer's sign-in page. Uses the authorization code flow with PKCE (RFC 7636). */
export async function redirectToIssuer(settings: IssuerSettings, returnTo: string): Promise<void> {
  const server = await discover(settings);
  if (server.authorization_endpoint === undefined)
    throw new Error("The issuer has no authorization endpoint.");
  const pending: Pending = {
    state: oauth.generateRandomState(),
    verifier: oauth.generateRandomCodeVerifier(),
    nonce: oauth.generateRandomNonce(),
    returnTo,
  };
  const url = new URL(server.authorization_endpoint);
  const asked = {
    client_id: settings.clientId,
    redirect_uri: callbackUrl(),
    response_type: "code",
    scope: "openid",
    state: pending.state,
    nonce: pending.nonce,
    code_challenge: await oauth.calculatePKCECodeChallenge(pending.verifier),
    code_challenge_method: "S256",
    // Send the audience under both names, because some issuers read `audience` and others read `resource` (RFC 8707).
    audience: settings.audience,
    ...(URL.canParse(settings.audience) ? { resource: settings.audience } : {}),
  };
  for (const [name, value] of Object.entries(asked)) url.searchParams.set(name, value);
  sessionStorage.setItem(PENDING, JSON.stringify(pending));
  location.assign(url);
}

export interface SignInResult {
  readonly returnTo: string;
  /** Returns an API token. If `organizationId` is undefined, the issuer's token must name the organization. */
  readonly tokenFor: (organizationId: string | undefined) => Promise<Token>;
}

/**
 * Completes the sign-in after the issuer has redirected to the console.
 * @throws Error with the issuer's message, or if the sign-in was not started in this window
 */
export async function completeSignIn(settings: IssuerSettings): Promise<SignInResult> {
  const stored = sessionStorage.getItem(PENDING);
  sessionStorage.removeItem(PENDING);
  if (stored === null) throw new Error("This sign-in was not started in this window. Start it again.");
  const pending = JSON.parse(stored) as Pending;
  const server = await discover(settings);
  const client: oauth.Client = { client_id: settings.clientId };
  const params = oauth.validateAuthResponse(server, client, new URL(location.href), pending.state);
  const options = {
    ...allowHttp(settings),
    ...(URL.canParse(settings.audience) ? { additionalParameters: { resource: settings.audience } } : {}),
  };
  const response = await oauth.authorizationCodeGrantRequest(
    server,
    client,
    oauth.None(),
    params,
    callbackUrl(),
    pending.verifier,
    options,
  );
  let tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
    expectedNonce: pending.nonce,
    requireIdToken: true,
  });

  async function refresh(): Promise<void> {
    if (tokens.refresh_token === undefined) return;
    const answer = await oauth.refreshTokenGrantRequest(
      server,
      client,
      oauth.None(),
      tokens.refresh_token,
      options,
    );
    const next = await oauth.processRefreshTokenResponse(server, client, answer);
    tokens = { ...tokens, ...next };
  }

  let isFirst = true;
  return {
    returnTo: pending.returnTo,
    async tokenFor(organizationId) {
      if (!isFirst) await refresh();
      isFirst = false;
      return exchange(tokenOf(tokens, settings.audience), organizationId);
    },
  };
}

/** Returns the issuer's token for the API: the token whose audience is the API, or else the access token. */
function tokenOf({ access_token, id_token }: oauth.TokenEndpointResponse, audience: string): string {
  const isFor = (token: string | undefined): token is string => {
    const [, payload = ""] = token?.split(".") ?? [];
    try {
      const { aud } = JSON.parse(atob(payload.replaceAll("-", "+").replaceAll("_", "/"))) as {
        aud?: unknown;
      };
      return [aud].flat().includes(audience);
    } catch {
      return false;
    }
  };
  return [access_token, id_token].find(isFor) ?? access_token;
}
