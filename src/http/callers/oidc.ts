import {
  createRemoteJWKSet,
  customFetch,
  errors,
  type JWTVerifyGetKey,
  jwtVerify,
  type RemoteJWKSet,
} from "jose";
import { parseJson } from "../../event/parse-json.ts";
import type { Clock } from "../../lib/clock.ts";
import { UnavailableError } from "../../lib/errors.ts";
import { PUBLIC_KEY_ALGORITHMS } from "../../verify/token/jwt-config.ts";

export interface IssuerToken {
  readonly subject: string;
  /** Organization from a claim in the token or from the operator's setting. `undefined` if neither exists. */
  readonly organizationId: string | undefined;
  readonly expiresAtMs: number;
}

export interface OidcIssuer {
  readonly issuer: string;
  /**
   * Returns the token's claims if this issuer signed it for Inlet. Returns `undefined` otherwise.
   *
   * @throws UnavailableError when the issuer's keys cannot be fetched
   */
  readonly verify: (token: string) => Promise<IssuerToken | undefined>;
}

/** Accepted signature algorithms. Algorithms with a shared secret (`HS…`) and `none` are excluded. */
const ALGORITHMS = [...PUBLIC_KEY_ALGORITHMS, "Ed25519"];

/** Tolerated difference between the issuer's clock and ours. */
const CLOCK_TOLERANCE_SECONDS = 30;
/** Age at which the issuer's keys are fetched again, in ms, so that withdrawn keys stop working. */
const KEYS_MAX_AGE_MS = 600_000;
/** Minimum time between fetches for unknown key ids, in ms. The fetches need a limit, because any client can send an unknown key id. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000;
/** Time after a failed request in which the issuer is not called again, in ms. */
const FAILURE_COOLDOWN_MS = 1_000;
/** Maximum length of `sub` (OpenID Connect Core 1.0, section 2). */
const MAX_SUBJECT_CHARS = 255;

export interface OidcOptions {
  /** Issuer as it appears in tokens, which must match exactly. */
  readonly issuer: string;
  readonly audience: string;
  readonly organizationClaim?: string | undefined;
  /** Organization for tokens without the organization claim. */
  readonly organizationId?: string | undefined;
  readonly clock: Clock;
  readonly unknownKeyCooldownMs?: number;
}

/**
 * Verifies tokens with the published keys of an issuer (OpenID Connect Discovery 1.0, section 4; RFC 7517). Keys are fetched when the first
 * token arrives. The issuer may be in a private network, because the operator configures it.
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
      // Recently fetched keys stay usable after a failure. Older keys are dropped, because their URL may have changed.
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

/** Returns whether verification failed because of the token, and not because the issuer's keys are unavailable. */
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
  return parseJson(await readText(response));
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
