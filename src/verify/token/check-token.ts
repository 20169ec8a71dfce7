import { createHash, type KeyObject } from "node:crypto";
import { decodeProtectedHeader, errors, type JWTPayload, type JWTVerifyOptions, jwtVerify } from "jose";
import { isQueryMethod } from "../../event/methods.ts";
import type { RawRequest } from "../../event/received.ts";
import { ok, type Result } from "../../lib/result.ts";
import { queryValues } from "../../lib/urlencoded.ts";
import type { FindKeys } from "../keys/find-keys.ts";
import { isValidAt, type PublicKey } from "../keys/parse-keys.ts";
import type { RequestView } from "../message/request-view.ts";
import { isHashOf } from "../message/request-view.ts";
import {
  isDeliveryId,
  reject,
  type Verification,
  type VerificationFailure,
  type VerifyContext,
} from "../verifier.ts";
import type { JwtConfig } from "./jwt-config.ts";

interface TokenCheck {
  readonly config: JwtConfig;
  readonly view: RequestView;
  readonly context: VerifyContext;
  readonly findKeys: FindKeys;
}

/** Header of a token, which names the algorithm and the key. Its content is not verified yet. */
interface TokenHeader {
  readonly algorithm: string;
  readonly keyId: string | undefined;
}

/**
 * Verifies the signature of a token and then its claims (RFC 7519 section 7.2). The token's own header can only select among the
 * configured keys and algorithms.
 *
 * @throws UnavailableError if the keys cannot be fetched
 */
export async function checkToken(
  token: string,
  { config, view, context, findKeys }: TokenCheck,
): Promise<Result<Verification, VerificationFailure>> {
  const header = parseTokenHeader(token);
  if (header === undefined || !(config.algorithms as readonly string[]).includes(header.algorithm)) {
    return reject("malformed", "the token does not name an accepted algorithm");
  }
  const nowMs = view.request.arrivedAtMs;
  const options = toVerifyOptions(config, nowMs);
  const found = findKeys(view, context);
  if (!found.ok) return found;
  const { keys, renew } = found.value;
  for (const load of [async () => keys, renew]) {
    for (const { key } of ((await load?.()) ?? []).filter((one) => matchesKey(one, header, nowMs))) {
      const verified = await verifyWithKey(key, token, options);
      if (verified === undefined) continue;
      return verified.ok ? checkClaims(verified.value, token, config, view, context) : verified;
    }
  }
  return reject("mismatch", "the token's signature matches none of the keys");
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

/** Returns whether a key is currently valid and matches a token's algorithm and key id. A missing key id matches any key. */
const matchesKey = (one: PublicKey, { algorithm, keyId }: TokenHeader, nowMs: number): boolean =>
  (one.id === undefined || keyId === undefined || one.id === keyId) &&
  (one.algorithm === undefined || one.algorithm === algorithm) &&
  isValidAt(one, nowMs);

function toVerifyOptions(config: JwtConfig, nowMs: number): JWTVerifyOptions {
  const { algorithms, issuer, audience, maxAgeSeconds, requireExpiry, clockSkewSeconds } = config;
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

/** Returns the payload of a token, or `undefined` if the token was not signed with this key. */
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
        `the token's claim ${error.claim} is missing or has the wrong value`,
      );
    }
    // Any other error means that this key did not sign the token: the signature or key type is wrong, or the payload is malformed.
    return undefined;
  }
}

function checkClaims(
  payload: JWTPayload,
  token: string,
  { claims, secretClaim, bodyHash, deliveryIdClaim, bindDedupe }: JwtConfig,
  view: RequestView,
  { secrets }: VerifyContext,
): Result<Verification, VerificationFailure> {
  for (const [name, wanted] of Object.entries(claims)) {
    if (!Object.hasOwn(payload, name) || payload[name] !== wanted) {
      return reject("mismatch", `the token's claim ${name} is missing or has the wrong value`);
    }
  }
  if (secretClaim !== undefined && !secrets.some((secret) => payload[secretClaim] === secret)) {
    return reject("mismatch", `the token's claim ${secretClaim} matches no secret of the channel`);
  }
  if (bodyHash !== undefined) {
    const hashed = getHashedBytes(view.request, bodyHash);
    const part = hashed === view.request.body ? "body" : "query";
    if (!isHashOf(hashed, payload[bodyHash.claim], bodyHash))
      return reject("mismatch", `the ${part} does not match the hash in the token`);
  }
  const id = deliveryIdClaim === undefined ? undefined : payload[deliveryIdClaim];
  if (id !== undefined && (typeof id !== "string" || !isDeliveryId(id))) {
    return reject("malformed", `the token's claim ${deliveryIdClaim} is not a valid delivery id`);
  }
  return ok({
    ...(id === undefined ? {} : { deliveryId: id }),
    ...(bindDedupe === "none"
      ? {}
      : { boundTo: createHash("sha256").update(getSigningInput(token)).digest("base64url") }),
  });
}

/** Returns the bytes that `bodyHash.claim` hashes: the body, or the query if the method is GET or DELETE and `ofQuery` is set. */
export const getHashedBytes = (
  { method, target, body }: Pick<RawRequest, "method" | "target" | "body">,
  { ofQuery }: NonNullable<JwtConfig["bodyHash"]>,
): Buffer =>
  ofQuery !== undefined && isQueryMethod(method) ? Buffer.from(JSON.stringify(queryValues(target))) : body;

const getSigningInput = (token: string): string => token.slice(0, token.lastIndexOf("."));
