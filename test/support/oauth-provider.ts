import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Configuration, type KoaContextWithOIDC, Provider } from "oidc-provider";

/** A certified OAuth 2.0 provider on the loopback at which every user consents. */
export interface OAuthProvider extends AsyncDisposable {
  readonly issuer: string;
  /** The grant types of all requests to the token endpoint. */
  readonly asked: string[];
  readonly revokeAll: () => Promise<void>;
  /** Follows redirects from `url` like a browser. Returns the first address outside the provider. */
  readonly browse: (url: string) => Promise<string>;
}

export const CLIENT = { clientId: "inlet", clientSecret: "the-secret-of-the-client" } as const;

export async function startOAuthProvider(options: {
  readonly redirectUri: string;
  readonly configuration?: Configuration;
}): Promise<OAuthProvider> {
  const asked: string[] = [];
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.clientId,
        client_secret: CLIENT.clientSecret,
        redirect_uris: [options.redirectUri],
        grant_types: ["authorization_code", "refresh_token", "client_credentials"],
        response_types: ["code"],
      },
    ],
    // Reusing a rotated refresh token revokes the whole grant.
    rotateRefreshToken: true,
    issueRefreshToken: async () => true,
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      revocation: { enabled: true },
    },
    interactions: { url: (_, { uid }) => `/interaction/${uid}` },
    findAccount: async (_, accountId) => ({ accountId, claims: async () => ({ sub: accountId }) }),
    async loadExistingGrant(context) {
      const grant = new context.oidc.provider.Grant({
        accountId: context.oidc.session?.accountId ?? "",
        clientId: context.oidc.client?.clientId ?? "",
      });
      grant.addOIDCScope("openid offline_access");
      await grant.save();
      return grant;
    },
    pkce: { required: () => true },
    cookies: { keys: ["test"] },
    ttl: {
      Interaction: 60,
      Grant: 3_600,
      Session: 3_600,
      AccessToken: 600,
      RefreshToken: 3_600,
      IdToken: 60,
    },
    ...options.configuration,
  });
  provider.on("server_error", (_, error) => console.error(error));
  const handle = provider.callback();
  server.on("request", (request, response) => {
    if (request.url?.startsWith("/interaction/")) {
      void provider.interactionFinished(request, response, { login: { accountId: "person" } });
      return;
    }
    void handle(request, response);
  });
  const grants = new Set<string>();
  const recordGrant = (token: { readonly grantId?: string | undefined }) =>
    void (token.grantId && grants.add(token.grantId));
  provider.on("access_token.saved", recordGrant);
  provider.on("refresh_token.saved", recordGrant);
  const recordGrantType = (context: KoaContextWithOIDC) =>
    void asked.push(String(context.oidc.params?.grant_type));
  provider.on("grant.success", recordGrantType);
  provider.on("grant.error", recordGrantType);
  return {
    issuer,
    asked,
    async revokeAll() {
      for (const id of grants) {
        await provider.RefreshToken.revokeByGrantId(id);
        await provider.AccessToken.revokeByGrantId(id);
      }
    },
    async browse(url) {
      const cookies = new Map<string, string>();
      for (let at = url; ; ) {
        if (!at.startsWith(issuer)) return at;
        const headers = { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") };
        const response = await fetch(at, { redirect: "manual", headers });
        for (const cookie of response.headers.getSetCookie()) {
          const [name = "", value = ""] = cookie.split(";", 1)[0]?.split(/=(.*)/s) ?? [];
          cookies.set(name, value);
        }
        const location = response.headers.get("location");
        if (location === null)
          throw new Error(`${at} responded with ${response.status}: ${await response.text()}`);
        at = new URL(location, at).href;
      }
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
