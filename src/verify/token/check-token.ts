import { createHash, type KeyObject } from "node:crypto";
import { decodeProtectedHeader, errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import { ok, type Result } from "../../lib/result.ts";
import type { FindKeys } from "../keys/find-keys.ts";
import { isValidAt, type PublicKey } from "../keys/parse-keys.ts";
import type { RequestView } from "../message/request-view.ts";
import { isHashOf } from "../message/signature.ts";
import {
  isDeliveryId,
  reject,
  type Verification,
  type VerificationFailure,
  type VerifyContext,
} from "../verifier.ts";
import type { JwtSettings } from "./jwt-settings.ts";

interface TokenCheck {
  readonly settings: JwtSettings;
  readonly view: RequestView;
  readonly context: VerifyContext;
  readonly findKeys: FindKeys;
}

/** The claims of a token about its key; none is proved. */
interface TokenHeader {
  readonly algorithm: string;
  readonly keyId: string | undefined;
}

/**
 * Checks a token's signature, then its claims (RFC 7519 section 7.2). Its header only chooses among the keys and algorithms
 * that the settings name.
 *
 * @throws UnavailableError where the keys cannot be fetched
 */
export async function checkToken(
  token: string,
  { settings, view, context, findKeys }: TokenCheck,
): Promise<Result<Verification, VerificationFailure>> {
  const header = parseTokenHeader(token);
  if (header === undefined || !(settings.algorithms as readonly string[]).includes(header.algorithm)) {
    return reject("malformed", "the token names no algorithm that is accepted");
  }
  const nowMs = view.request.arrivedAtMs;
  const options = toVerifyOptions(settings, nowMs);
  const found = findKeys(view, context);
  if (!found.ok) return found;
  const { keys, renew } = found.value;
  for (const load of [async () => keys, renew]) {
    for (const { key } of ((await load?.()) ?? []).filter((one) => matchesKey(one, header, nowMs))) {
      const verified = await verifyWithKey(key, token, options);
      if (verified === undefined) continue;
      return verified.ok
        ? checkClaims(verified.value, token, settings, view.request.body, context)
        : verified;
    }
  }
  return reject("mismatch", "the token is signed by none of the keys");
}

function parseTokenHeader(token: string): TokenHeader | undefined {
  try {
    const { alg, kid } = decodeProtectedHeader(token);
    return typeof alg === "string"
      ? { algorithm: alg, keyId: typeof kid === "string" ? kid : undefined }
      : undefined;
  } catch {
    return undefined;
  }
}

/** Of the id that the token names, where keys have ids, and for its algorithm. */
const matchesKey = (one: PublicKey, { algorithm, keyId }: TokenHeader, nowMs: number): boolean =>
  (one.id === undefined || keyId === undefined || one.id === keyId) &&
  (one.algorithm === undefined || one.algorithm === algorithm) &&
  isValidAt(one, nowMs);

function toVerifyOptions(settings: JwtSettings, nowMs: number): JWTVerifyOptions {
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
async function verifyWithKey(
  key: KeyObject,
  token: string,
  options: JWTVerifyOptions,
): Promise<Result<JWTPayload, VerificationFailure> | undefined> {
  try {
    return ok((await jwtVerify(token, key, options)).payload);
  } catch (error) {
    if (error instanceof errors.JWTExpired) return reject("stale", "the token is too old");
    if (error instanceof errors.JWTClaimValidationFailed) {
      const isTime = ["nbf", "iat", "exp"].includes(error.claim);
      return reject(
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
  body: Buffer,
  { secrets }: VerifyContext,
): Result<Verification, VerificationFailure> {
  for (const [name, wanted] of Object.entries(claims)) {
    if (!Object.hasOwn(payload, name) || payload[name] !== wanted) {
      return reject("mismatch", `the token's claim ${name} is missing or not as it must be`);
    }
  }
  if (secretClaim !== undefined && !secrets.some((secret) => payload[secretClaim] === secret)) {
    return reject("mismatch", `the token's claim ${secretClaim} is none of the channel's secrets`);
  }
  if (bodyHash !== undefined && !isHashOf(body, payload[bodyHash.claim], bodyHash)) {
    return reject("mismatch", "the body is not the one whose hash is in the token");
  }
  const id = deliveryIdClaim === undefined ? undefined : payload[deliveryIdClaim];
  if (id !== undefined && (typeof id !== "string" || !isDeliveryId(id))) {
    return reject("malformed", `the token's claim ${deliveryIdClaim} is no id`);
  }
  return ok({
    ...(id === undefined ? {} : { deliveryId: id }),
    ...(bindDedupe === "none"
      ? {}
      : { boundTo: createHash("sha256").update(getSigningInput(token)).digest("base64url") }),
  });
}

const getSigningInput = (token: string): string => token.slice(0, token.lastIndexOf("."));
