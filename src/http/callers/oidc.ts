import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWTVerifyGetKey,
  jwtVerify,
  type RemoteJWKSet,
} from "jose";
import type { Clock } from "../../lib/clock.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { PUBLIC_KEY_ALGORITHMS } from "../../verify/token/jwt-config.ts";

export interface IssuerToken {
  readonly subject: string;
  /** From the token's claim or the operator's setting. `undefined` if neither names an organization. */
  readonly organizationId: string | undefined;
  readonly expiresAtMs: number;
}

export interface OidcIssuer {
  readonly issuer: string;
  /**
   * Returns the claims if this issuer signed the token for Inlet, otherwise `undefined`.
   *
   * @throws UnavailableError when the issuer's keys cannot be fetched
   */
  readonly verify: (token: string) => Promise<IssuerToken | undefined>;
}

/** Accepted signature algorithms. Shared secrets (`HS…`) and `none` are excluded. */
const ALGORITHMS = [...PUBLIC_KEY_ALGORITHMS, "Ed25519"];

/** Tolerated difference between the issuer's clock and ours. */
const CLOCK_TOLERANCE_SECONDS = 30;
/** Age at which the issuer's keys are fetched again, so that withdrawn keys stop working. */
const KEYS_MAX_AGE_MS = 600_000;
/** Minimum time between fetches caused by unknown key ids. Anyone can invent key ids, so these fetches need a limit. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000;
/** After a failed request, the issuer is not called for this long. */
const FAILURE_COOLDOWN_MS = 1_000;
/** Maximum length of `sub` (OpenID Connect Core 1.0, section 2). */
const MAX_SUBJECT_CHARS = 255;

export interface OidcOptions {
  /** Exactly as the issuer spells it in its tokens. It is compared character by character. */
  readonly issuer: string;
  readonly audience: string;
  readonly organizationClaim?: string | undefined;
  /** Organization for tokens without the organization claim. */
  readonly organizationId?: string | undefined;
  readonly clock: Clock;
  readonly unknownKeyCooldownMs?: number;
}

/**
 * Verifies tokens with the keys that the issuer publishes (OpenID Connect Discovery 1.0, section 4; RFC 7517). Keys are fetched when the
 * first token arrives. The issuer may be in a private network, because the operator configures it.
 */
export function createOidcIssuer({
  issuer,
  audience,
  organizationClaim,
  organizationId,
  clock,
  unknownKeyCooldownMs = UNKNOWN_KEY_COOLDOWN_MS,
}: OidcOptions): OidcIssuer {
  let known: Promise<RemoteJWKSet> | undefined;
  let retryAtMs = 0;

  async function fetchFromIssuer(url: string): Promise<unknown> {
    if (performance.now() < retryAtMs)
      throw new Error(
        "the last request to the issuer failed less than a second ago, so it is not called again yet",
      );
    try {
      return await fetchJson(url);
    } catch (error) {
      retryAtMs = performance.now() + FAILURE_COOLDOWN_MS;
      throw error;
    }
  }

  async function discover(): Promise<RemoteJWKSet> {
    const found = (await fetchFromIssuer(discoveryUrl(issuer))) as {
      issuer?: unknown;
      jwks_uri?: unknown;
    } | null;
    if (found?.issuer !== issuer) throw new Error(`the discovery document of ${issuer} names another issuer`);
    const jwksUrl = URL.parse(String(found.jwks_uri));
    if (jwksUrl?.protocol !== new URL(issuer).protocol) {
      throw new Error(`the discovery document of ${issuer} names no jwks_uri with the same protocol`);
    }
    return createRemoteJWKSet(jwksUrl, {
      cacheMaxAge: KEYS_MAX_AGE_MS,
      cooldownDuration: unknownKeyCooldownMs,
      [customFetch]: async (url) => Response.json(await fetchFromIssuer(url)),
    });
  }

  const findKey: JWTVerifyGetKey = async (header, token) => {
    let keys: RemoteJWKSet | undefined;
    try {
      known ??= discover();
      keys = await known;
      return await keys(header, token);
    } catch (error) {
      if (isTokenError(error)) throw error;
      // Fresh keys remain usable after a failure. Old keys may have moved to another URL, so the next token triggers a new discovery.
      if (!keys?.fresh) known = undefined;
      throw new UnavailableError(`the keys of ${issuer} cannot be fetched`, { cause: error });
    }
  };

  return {
    issuer,
    async verify(token) {
      try {
        const { payload } = await jwtVerify(token, findKey, {
          algorithms: ALGORITHMS,
          issuer,
          audience,
          requiredClaims: ["sub", "exp"],
          clockTolerance: CLOCK_TOLERANCE_SECONDS,
          currentDate: new Date(clock()),
        });
        if (!isSubject(payload.sub)) return undefined;
        const claimed = organizationClaim === undefined ? undefined : payload[organizationClaim];
        return {
          subject: payload.sub,
          organizationId: typeof claimed === "string" ? claimed : organizationId,
          expiresAtMs: (payload.exp ?? 0) * 1_000,
        };
      } catch (error) {
        if (error instanceof errors.JOSEError) return undefined;
        throw error;
      }
    },
  };
}

const discoveryUrl = (issuer: string): string =>
  `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`;

/** Returns whether the token itself is invalid: the issuer's keys are available, but none of them matches. */
const isTokenError = (error: unknown): boolean =>
  error instanceof errors.JWKSNoMatchingKey ||
  error instanceof errors.JWKSMultipleMatchingKeys ||
  error instanceof errors.JOSENotSupported;

const isSubject = (text: string | undefined): text is string =>
  text !== undefined &&
  text.length > 0 &&
  text.length <= MAX_SUBJECT_CHARS &&
  text.isWellFormed() &&
  !text.includes("\0");

const DOCUMENT_TIMEOUT_MS = 3_000;
const MAX_DOCUMENT_BYTES = 1024 * 1024;

/**
 * Fetches a JSON document from the issuer within three seconds, up to 1 MiB, without following redirects.
 *
 * @throws Error if the request fails or a limit is exceeded
 */
async function fetchJson(url: string): Promise<unknown> {
  const response = await fetch(url, {
    headers: { accept: "application/json" },
    redirect: "error",
    signal: AbortSignal.timeout(DOCUMENT_TIMEOUT_MS),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${url} responded with HTTP ${response.status}`);
  }
  return JSON.parse(await readText(response));
}

async function readText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_DOCUMENT_BYTES)
      throw new Error(`${response.url} responded with more than ${MAX_DOCUMENT_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
