import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly jwk: JWK;
}

/** An OpenID Connect issuer on the loopback, with the endpoints that a token verifier uses. */
export interface TestIssuer extends AsyncDisposable {
  readonly issuer: string;
  /** Creates a signing key, and publishes it unless `published` is false. */
  readonly addKey: (kid: string, options?: { alg?: string; published?: boolean }) => Promise<IssuerKey>;
  readonly sign: (key: IssuerKey, claims?: object, header?: object) => Promise<string>;
  /** Overrides of responses, by path. */
  readonly instead: Map<string, () => { status?: number; headers?: Record<string, string>; body?: string }>;
  /** The requested paths. */
  readonly asked: string[];
}

export const AUDIENCE = "inlet-test";

export async function startTestIssuer({ path = "" }: { readonly path?: string } = {}): Promise<TestIssuer> {
  const keys: IssuerKey[] = [];
  const asked: string[] = [];
  const instead: TestIssuer["instead"] = new Map();
  const server = createServer((request, response) => {
    const { url = "" } = request;
    asked.push(url);
    const other = instead.get(url)?.();
    if (other) return response.writeHead(other.status ?? 200, other.headers).end(other.body);
    const document = documents().get(url);
    response.writeHead(document ? 200 : 404, { "content-type": "application/json" });
    return response.end(JSON.stringify(document ?? {}));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const issuer = origin + path;
  const documents = () =>
    new Map<string, object>([
      [`${path.replace(/\/$/, "")}/.well-known/openid-configuration`, { issuer, jwks_uri: `${origin}/jwks` }],
      ["/jwks", { keys: keys.map(({ jwk }) => jwk) }],
    ]);
  return {
    issuer,
    instead,
    asked,
    async addKey(kid, { alg = "RS256", published = true } = {}) {
      const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
      const key = { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
      if (published) keys.push(key);
      return key;
    },
    sign({ kid, alg, privateKey }, claims, header) {
      const nowSeconds = Math.floor(Date.now() / 1_000);
      const all = { iss: issuer, aud: AUDIENCE, sub: "someone", iat: nowSeconds, exp: nowSeconds + 300 };
      return new SignJWT({ ...all, ...claims }).setProtectedHeader({ alg, kid, ...header }).sign(privateKey);
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
