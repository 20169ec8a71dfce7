import { createHash, type KeyObject, timingSafeEqual } from "node:crypto";
import { decodeProtectedHeader, errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import type { RawRequest } from "../../event/received.ts";
import { ok, type Result } from "../../lib/result.ts";
import { isDeliveryId } from "../delivery-id.ts";
import { decode, refuse } from "../message/signature.ts";
import type { Refusal, Verification, VerifyContext } from "../verifier.ts";
import type { FindTokenKeys, TokenHeader } from "./find-token-keys.ts";
import type { JwtSettings } from "./jwt-settings.ts";

export interface TokenCheck {
  readonly settings: JwtSettings;
  readonly request: RawRequest;
  readonly context: VerifyContext;
  readonly findKeys: FindTokenKeys;
}

/**
 * Checks a token's signature, then its claims (RFC 7519 section 7.2). Its header only chooses among the keys and algorithms
 * that the settings name.
 *
 * @throws UnavailableError where the keys cannot be fetched
 */
export async function checkToken(
  token: string,
  { settings, request, context, findKeys }: TokenCheck,
): Promise<Result<Verification, Refusal>> {
  const header = headerOf(token);
  if (header === undefined || !(settings.algorithms as readonly string[]).includes(header.algorithm)) {
    return refuse("malformed", "the token names no algorithm that is accepted");
  }
  const options = optionsOf(settings, request.arrivedAtMs);
  for await (const keys of findKeys(header, context, request.arrivedAtMs)) {
    for (const key of keys) {
      const verified = await verifyUnder(key, token, options);
      if (verified === undefined) continue;
      return verified.ok ? checkClaims(verified.value, token, settings, request, context) : verified;
    }
  }
  return refuse("mismatch", "the token is signed by none of the keys");
}

function headerOf(token: string): TokenHeader | undefined {
  try {
    const { alg, kid } = decodeProtectedHeader(token);
    return typeof alg === "string"
      ? { algorithm: alg, keyId: typeof kid === "string" ? kid : undefined }
      : undefined;
  } catch {
    return undefined;
  }
}

function optionsOf(settings: JwtSettings, nowMs: number): JWTVerifyOptions {
  const { algorithms, issuer, audience, maxAgeSeconds, requireExpiry, clockSkewSeconds } = settings;
  return {
    algorithms,
    currentDate: new Date(nowMs),
    clockTolerance: clockSkewSeconds,
    requiredClaims: requireExpiry ? ["exp"] : [],
    ...(issuer === undefined ? {} : { issuer }),
    ...(audience === undefined ? {} : { audience }),
    ...(maxAgeSeconds === undefined ? {} : { maxTokenAge: maxAgeSeconds }),
  };
}

/** Undefined where the signature is not the key's. */
async function verifyUnder(
  key: KeyObject,
  token: string,
  options: JWTVerifyOptions,
): Promise<Result<JWTPayload, Refusal> | undefined> {
  try {
    return ok((await jwtVerify(token, key, options)).payload);
  } catch (error) {
    if (error instanceof errors.JWTExpired) return refuse("stale", "the token is too old");
    if (error instanceof errors.JWTClaimValidationFailed) {
      const isTime = ["nbf", "iat", "exp"].includes(error.claim);
      return refuse(
        isTime ? "stale" : "mismatch",
        `the token's claim ${error.claim} is missing or not as it must be`,
      );
    }
    // Any other: the signature is wrong, the key is of another kind, or what is signed is no token.
    return undefined;
  }
}

function checkClaims(
  payload: JWTPayload,
  token: string,
  { claims, secretClaim, bodyHash, deliveryIdClaim, bindDedupe }: JwtSettings,
  request: RawRequest,
  { secrets }: VerifyContext,
): Result<Verification, Refusal> {
  for (const [name, wanted] of Object.entries(claims)) {
    if (!Object.hasOwn(payload, name) || payload[name] !== wanted) {
      return refuse("mismatch", `the token's claim ${name} is missing or not as it must be`);
    }
  }
  if (secretClaim !== undefined && !secrets.some((secret) => payload[secretClaim] === secret)) {
    return refuse("mismatch", `the token's claim ${secretClaim} is none of the channel's secrets`);
  }
  if (bodyHash !== undefined && !isHashOf(request.body, payload[bodyHash.claim], bodyHash)) {
    return refuse("mismatch", "the body is not the one whose hash is in the token");
  }
  const id = deliveryIdClaim === undefined ? undefined : payload[deliveryIdClaim];
  if (id !== undefined && (typeof id !== "string" || !isDeliveryId(id))) {
    return refuse("malformed", `the token's claim ${deliveryIdClaim} is no id`);
  }
  return ok({
    ...(id === undefined ? {} : { deliveryId: id }),
    ...(bindDedupe === "none"
      ? {}
      : { boundTo: createHash("sha256").update(signedPartOf(token)).digest("base64url") }),
  });
}

function isHashOf(
  body: Buffer,
  claim: unknown,
  { algorithm, encoding }: NonNullable<JwtSettings["bodyHash"]>,
): boolean {
  const said = typeof claim === "string" ? decode(claim, "", encoding) : undefined;
  const actual = createHash(algorithm).update(body).digest();
  return said !== undefined && said.length === actual.length && timingSafeEqual(said, actual);
}

const signedPartOf = (token: string): string => token.slice(0, token.lastIndexOf("."));
