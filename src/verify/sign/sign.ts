import { createHash } from "node:crypto";
import { SignJWT } from "jose";
import { err, ok, type Result } from "../../lib/result.ts";
import type { KeySource } from "../keys/key-source.ts";
import type { SignedMessageConfig } from "../message/config.ts";
import { compileMessage } from "../message/message.ts";
import { compileDigest, type HmacConfig, hmac } from "../schemes/hmac.ts";
import { type StandardConfig, toHmacConfig } from "../schemes/standard-webhooks.ts";
import type { TokenConfig } from "../schemes/token.ts";
import { findScheme } from "../schemes.ts";
import { deriveKey } from "../secret-key.ts";
import { getHashedBytes } from "../token/check-token.ts";
import { type JwtConfig, usesSharedSecrets } from "../token/jwt-config.ts";
import { type OutgoingRequest, putInto } from "./place.ts";

export interface SignOptions {
  readonly secret: string;
  /** Public base URL of the gateway, without `/hooks/…`. */
  readonly hooksUrl: string;
  readonly nowMs: number;
  /** Content type that overrides the one declared by the sender. */
  readonly readAs?: string | undefined;
}

type SchemeConfig = Readonly<Record<string, unknown>> & { readonly scheme?: unknown };
type Signed = Result<OutgoingRequest, string>;

/**
 * Signs a request as its provider would, with a shared secret and the current time. The error explains why the request cannot be
 * signed.
 */
export async function signRequest(
  request: OutgoingRequest,
  verification: SchemeConfig,
  options: SignOptions,
): Promise<Signed> {
  if (verification.scheme === "none") return ok(request);
  const ways =
    verification.scheme === "anyOf" ? (verification.of as readonly SchemeConfig[]) : [verification];
  let reason = "the verification scheme cannot sign requests";
  for (const way of ways) {
    const signed = await signWith(request, way, options);
    if (!signed.ok) reason = signed.error;
    else if (await isVerified(signed.value, way, options)) return signed;
    else reason = "the secret or the request does not match the verification scheme";
  }
  return err(reason);
}

async function signWith(request: OutgoingRequest, way: SchemeConfig, options: SignOptions): Promise<Signed> {
  const config = findScheme(way).configSchema.parse(way);
  switch (way.scheme) {
    case "hmac":
      return signMessage(request, config as HmacConfig, options);
    case "standardWebhooks":
      return signMessage(
        request,
        hmac.configSchema.parse(toHmacConfig(config as StandardConfig)) as HmacConfig,
        options,
      );
    case "token":
      return putToken(request, config as TokenConfig, options.secret);
    case "jwt":
      return signToken(request, config as JwtConfig, options);
    default:
      return err("only the provider can sign this delivery, because it alone has the private key");
  }
}

/** Verifies a signed request as the channel would, so that the CLI never sends a request that the channel would reject. */
async function isVerified(
  signed: OutgoingRequest,
  way: SchemeConfig,
  options: SignOptions,
): Promise<boolean> {
  const { secret, hooksUrl, nowMs, readAs } = options;
  const context = { secrets: [secret], hooksUrl, readAs, keys: NO_KEYS };
  return (
    await findScheme(way)
      .create(way)
      .verify({ ...signed, arrivedAtMs: nowMs }, context)
  ).ok;
}

/** Schemes with shared secrets fetch no keys. */
const NO_KEYS: KeySource = { get: () => [], renew: async () => undefined };

function signMessage(request: OutgoingRequest, config: HmacConfig, options: SignOptions): Signed {
  const { secret, hooksUrl, nowMs, readAs } = options;
  const { timestamp, bodyHash, deliveryId, items } = config;
  const time = timestamp && formatTime(nowMs, timestamp.unit);
  const beside: [name: string, value: string][] = [];
  let prepared: Signed = ok(request);
  const put = (place: { readonly in: string; readonly name: string }, value: string): void => {
    if (place.in === "item") beside.push([place.name, value]);
    else if (prepared.ok)
      prepared = putInto(prepared.value, place as Parameters<typeof putInto>[1], (before) =>
        typeof before === "number" ? Number(value) : value,
      );
  };
  if (timestamp !== undefined && time !== undefined) put(timestamp.source, time);
  if (bodyHash !== undefined) {
    const { algorithm, encoding, prefix = "" } = bodyHash;
    put(bodyHash.source, prefix + createHash(algorithm).update(request.body).digest(encoding));
  }
  const { signedHeaders } = config;
  if (signedHeaders?.listedIn.in === "item") {
    put(signedHeaders.listedIn, Object.keys(request.headers).join(signedHeaders.separator[0]));
  }
  if (deliveryId?.in === "item") put(deliveryId, `delivery_${nowMs}`);
  if (!prepared.ok) return prepared;

  const place = { in: config.in, name: config.name };
  const write = (signature: string): Signed =>
    prepared.ok ? putInto(prepared.value, place, () => writeValue(signature, config, beside)) : prepared;
  // Write a placeholder signature first, because the signed text may include other items of the signature's header.
  const length = createHash(config.algorithm).update("").digest().length;
  const empty = write(Buffer.alloc(length, 1).toString(config.encoding));
  if (!empty.ok) return empty;
  const context = { secrets: [secret], hooksUrl, readAs, keys: NO_KEYS };
  const message = compileMessage(config)({ ...empty.value, arrivedAtMs: nowMs }, context);
  if (!message.ok) return err(message.error.message);
  const signature = compileDigest(config)(secret)?.(message.value.bytes(secret));
  if (signature === undefined) return err("the secret does not have the encoding that the scheme requires");
  return items !== undefined && beside.some(([name]) => name === items.key)
    ? err("an item next to the signature already has the signature's key")
    : write(signature.toString(config.encoding));
}

/** Formats the header or field value that contains the signature, with any other items such as a timestamp. */
function writeValue(
  signature: string,
  { prefix = "", items }: Pick<SignedMessageConfig, "prefix" | "items">,
  beside: readonly (readonly [name: string, value: string])[],
): string {
  if (items === undefined) return prefix + signature;
  const { separator, assign, key = "sha256" } = items;
  const [between = ","] = separator;
  const written = beside.map(([name, value]) => (assign === undefined ? value : name + assign + value));
  return [...written, assign === undefined ? prefix + signature : key + assign + prefix + signature].join(
    between,
  );
}

function formatTime(nowMs: number, unit: NonNullable<SignedMessageConfig["timestamp"]>["unit"]): string {
  switch (unit) {
    case "seconds":
      return String(Math.floor(nowMs / 1_000));
    case "milliseconds":
      return String(nowMs);
    case "rfc3339":
      return new Date(nowMs).toISOString();
    default:
      return unit satisfies never;
  }
}

function putToken(
  request: OutgoingRequest,
  { in: where, name = "", prefix = "" }: TokenConfig,
  secret: string,
): Signed {
  switch (where) {
    case "bearer":
      return putInto(request, { in: "header", name: "authorization" }, () => `Bearer ${secret}`);
    case "basic":
      return putInto(
        request,
        { in: "header", name: "authorization" },
        () => `Basic ${Buffer.from(secret).toString("base64")}`,
      );
    case "header":
      return putInto(request, { in: "header", name }, () => prefix + secret);
    case "query":
    case "body":
      return putInto(request, { in: where, name }, () => secret);
    default:
      return where satisfies never;
  }
}

const TOKEN_LIFE_SECONDS = 300;

async function signToken(request: OutgoingRequest, config: JwtConfig, options: SignOptions): Promise<Signed> {
  const { algorithms, keys, key, issuer, audience, claims, bodyHash, deliveryIdClaim, source } = config;
  const [algorithm = ""] = algorithms;
  if (!usesSharedSecrets(algorithms) || keys.from !== "secrets") {
    return err("only the provider can sign this token, because it alone has the private key");
  }
  const bytes = deriveKey(key, options.secret);
  if (bytes === undefined) return err("the secret does not have the encoding that the scheme requires");
  const nowSeconds = Math.floor(options.nowMs / 1_000);
  const [firstIssuer, firstAudience] = [issuer, audience].map((one) => (Array.isArray(one) ? one[0] : one));
  const payload = {
    ...claims,
    iat: nowSeconds,
    exp: nowSeconds + TOKEN_LIFE_SECONDS,
    ...(firstIssuer === undefined ? {} : { iss: firstIssuer }),
    ...(firstAudience === undefined ? {} : { aud: firstAudience }),
    ...(bodyHash && {
      [bodyHash.claim]: createHash(bodyHash.algorithm)
        .update(getHashedBytes(request, bodyHash))
        .digest(bodyHash.encoding),
    }),
    ...(deliveryIdClaim && { [deliveryIdClaim]: `delivery_${options.nowMs}` }),
  };
  const token = await new SignJWT(payload).setProtectedHeader({ alg: algorithm, typ: "JWT" }).sign(bytes);
  const isBearer = source.in === "header" && source.name.toLowerCase() === "authorization";
  return putInto(request, source, () => (isBearer ? `Bearer ${token}` : token));
}
