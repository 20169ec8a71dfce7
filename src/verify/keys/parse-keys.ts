import { createPublicKey, type KeyObject, X509Certificate } from "node:crypto";
import { parseJson } from "../../event/parse-json.ts";

export interface PublicKey {
  readonly key: KeyObject;
  /** Key id (`kid` of a JWK). */
  readonly id: string | undefined;
  /** The only algorithm for which the key may be used (`alg` of a JWK). `undefined` if the key does not name one. */
  readonly algorithm: string | undefined;
  /** Validity period of a certificate, in ms since 1970. Both ends are inclusive. */
  readonly validity: { readonly fromMs: number; readonly toMs: number } | undefined;
}

const MAX_KEYS = 64;

const PEM_BLOCK = /-----BEGIN (?<label>[A-Z0-9 ]+)-----[\sA-Za-z0-9+/=]+-----END \k<label>-----/g;
/** Prefix of every SubjectPublicKeyInfo with an Ed25519 key (RFC 8410). The 32 bytes of the key follow. */
const ED25519_SPKI = Buffer.from("302a300506032b6570032100", "hex");
const ED25519_BYTES = 32;

/**
 * Parses public keys in any of these forms:
 * - PEM public keys and certificates (RFC 7468)
 * - a JWK or JWKS (RFC 7517)
 * - a JSON object of PEM texts by key id
 * - DER in base64
 * - a bare Ed25519 key in hex or base64
 *
 * Returns `undefined` for any other text, and for more than 64 keys. Private and symmetric keys must not be entered here, so
 * they are rejected in the same way.
 */
export function parsePublicKeys(text: string): readonly PublicKey[] | undefined {
  try {
    const trimmed = text.trim();
    if (trimmed.startsWith("-----BEGIN ")) return unlessEmptyOrTooMany(parsePem(trimmed));
    if (trimmed.startsWith("{")) return unlessEmptyOrTooMany(parseKeySet(parseJson(trimmed)));
    return unlessEmptyOrTooMany([
      toPublicKey(createPublicKey({ key: decodeDer(trimmed), format: "der", type: "spki" })),
    ]);
  } catch {
    return undefined;
  }
}

export const isValidAt = ({ validity }: PublicKey, nowMs: number): boolean =>
  validity === undefined || (validity.fromMs <= nowMs && nowMs <= validity.toMs);

const unlessEmptyOrTooMany = (keys: readonly PublicKey[]): readonly PublicKey[] | undefined =>
  keys.length > 0 && keys.length <= MAX_KEYS ? keys : undefined;

export const toPublicKey = (key: KeyObject): PublicKey => ({
  key,
  id: undefined,
  algorithm: undefined,
  validity: undefined,
});

function parsePem(text: string, id?: string): readonly PublicKey[] {
  return [...text.matchAll(PEM_BLOCK)].slice(0, MAX_KEYS + 1).map(([block, label = ""]) => {
    if (label === "CERTIFICATE") {
      const certificate = new X509Certificate(block);
      const validity = {
        fromMs: certificate.validFromDate.getTime(),
        toMs: certificate.validToDate.getTime(),
      };
      return { ...toPublicKey(certificate.publicKey), id, validity };
    }
    if (!label.endsWith("PUBLIC KEY")) throw new Error("is not a public key");
    return { ...toPublicKey(createPublicKey(block)), id };
  });
}

function parseKeySet(json: unknown): readonly PublicKey[] {
  if (typeof json !== "object" || json === null) return [];
  if ("kty" in json) return [parseJwk(json)];
  if ("keys" in json) {
    if (!Array.isArray(json.keys) || json.keys.length > MAX_KEYS) return [];
    // Skip encryption keys and keys of unsupported types, which key sets may also contain.
    return json.keys.filter(isForSignatures).flatMap((jwk) => {
      try {
        return [parseJwk(jwk)];
      } catch {
        return [];
      }
    });
  }
  const byId = Object.entries(json);
  if (byId.length > MAX_KEYS) return [];
  return byId.flatMap(([id, pem]) => (typeof pem === "string" ? parsePem(pem, id) : []));
}

const isForSignatures = (jwk: unknown): jwk is object =>
  typeof jwk === "object" && jwk !== null && (!("use" in jwk) || jwk.use === "sig");

function parseJwk(jwk: object): PublicKey {
  const { kty, kid, alg, d, k } = jwk as Readonly<Record<string, unknown>>;
  if (kty === "oct" || d !== undefined || k !== undefined) throw new Error("is not a public key");
  return {
    ...toPublicKey(createPublicKey({ key: { ...jwk }, format: "jwk" })),
    id: typeof kid === "string" ? kid : undefined,
    algorithm: typeof alg === "string" ? alg : undefined,
  };
}

function decodeDer(text: string): Buffer {
  const isHex = /^(?:[0-9a-f]{2})+$/i.test(text);
  const bytes = Buffer.from(text.replace(/\s+/g, ""), isHex ? "hex" : "base64");
  return bytes.length === ED25519_BYTES ? Buffer.concat([ED25519_SPKI, bytes]) : bytes;
}
