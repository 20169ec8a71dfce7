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
import { PUBLIC_KEY_ALGORITHMS } from "../../verify/token/jwt-settings.ts";

/** The facts of a token that is believed. */
export interface IssuerToken {
  readonly subject: string;
  /** The organization that the token is for, by the claim or the setting of the operator; undefined: it does not say. */
  readonly organizationId: string | undefined;
  readonly expiresAtMs: number;
}

/** Tokens of another issuer. */
export interface OidcIssuer {
  readonly issuer: string;
  /**
   * The facts of a token that this issuer has signed for us; undefined for any other token.
   *
   * @throws UnavailableError when the issuer's keys are not known and cannot be had.
   */
  readonly verify: (token: string) => Promise<IssuerToken | undefined>;
}

/** No shared secrets (`HS…`), no `none`. */
const ALGORITHMS = [...PUBLIC_KEY_ALGORITHMS, "Ed25519"];

/** How far the issuer's clock and ours may differ. */
const CLOCK_TOLERANCE_SECONDS = 30;
/** Keys are asked for again after this long, so that those that an issuer withdraws end. */
const KEYS_MAX_AGE_MS = 600_000;
/** A key that is not among the known ones makes us fetchFromIssuer again, no more often than this: anybody can name one. */
const UNKNOWN_KEY_COOLDOWN_MS = 30_000;
/** An issuer that gives no answer is left alone for so long. */
const FAILURE_COOLDOWN_MS = 1_000;
/** Of OpenID Connect Core 1.0, section 2: `sub` is at most 255 characters. */
const MAX_SUBJECT_CHARS = 255;

export interface OidcOptions {
  /** As the issuer spells it: compared character by character. */
  readonly issuer: string;
  readonly audience: string;
  /** The claim that names an organization by its id. */
  readonly organizationClaim?: string | undefined;
  /** The organization of tokens without that claim. */
  readonly organizationId?: string | undefined;
  readonly clock: Clock;
  readonly unknownKeyCooldownMs?: number;
}

/**
 * Verifies tokens by the keys that the issuer publishes (OpenID Connect Discovery 1.0, section 4; RFC 7517), asked for when the
 * first token comes. The issuer is the operator's own setting: it may be in a private network.
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
    if (performance.now() < retryAtMs) throw new Error("the issuer has just failed to answer");
    try {
      return await fetchJson(url);
    } catch (error) {
      retryAtMs = performance.now() + FAILURE_COOLDOWN_MS;
      throw error;
    }
  }

  async function discover(): Promise<RemoteJWKSet> {
    const found = (await fetchFromIssuer(discoveryUrl(issuer))) as { issuer?: unknown; jwks_uri?: unknown } | null;
    if (found?.issuer !== issuer) throw new Error(`the discovery document of ${issuer} is another issuer's`);
    const jwksUrl = URL.parse(String(found.jwks_uri));
    if (jwksUrl?.protocol !== new URL(issuer).protocol) {
      throw new Error(`the discovery document of ${issuer} names no address of keys by the same protocol`);
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
      // Known keys serve on when an unknown one was asked for; else the issuer may have moved them.
      if (!keys?.fresh) known = undefined;
      throw new UnavailableError(`the keys of ${issuer} cannot be had`, { cause: error });
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

/** The keys are known, and the token names none of them. */
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

/** A JSON document of an issuer: three seconds, 1 MiB, no redirects. @throws Error when it cannot be had so */
async function fetchJson(url: string): Promise<unknown> {
  const response = await fetch(url, {
    headers: { accept: "application/json" },
    redirect: "error",
    signal: AbortSignal.timeout(DOCUMENT_TIMEOUT_MS),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`${url} answers ${response.status}`);
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
      throw new Error(`${response.url} answers more than ${MAX_DOCUMENT_BYTES} bytes`);
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}
