import { type KeyObject, verify } from "node:crypto";

interface KeyKind {
  readonly type: "ed25519" | "ec" | "rsa";
  /** OpenSSL name of the elliptic curve, for ECDSA. */
  readonly curve?: string;
  /** Hash function to apply to the message. `null` if the signature algorithm hashes the message itself. */
  readonly hash: string | null;
}

const KINDS = {
  ed25519: { type: "ed25519", hash: null },
  "ecdsa-p256-sha256": { type: "ec", curve: "prime256v1", hash: "sha256" },
  "ecdsa-p384-sha384": { type: "ec", curve: "secp384r1", hash: "sha384" },
  "rsa-sha256": { type: "rsa", hash: "sha256" },
  "rsa-sha512": { type: "rsa", hash: "sha512" },
  "rsa-sha1": { type: "rsa", hash: "sha1" },
} as const satisfies Readonly<Record<string, KeyKind>>;

export type SignatureAlgorithm = keyof typeof KINDS;
export const SIGNATURE_ALGORITHMS = Object.keys(KINDS) as SignatureAlgorithm[];

const MIN_RSA_BITS = 2_048;
const MIN_WEAK_RSA_BITS = 1_024;

/** Returns whether a key has the type and the minimum size that an algorithm requires. */
export function isKeyForAlgorithm(
  key: KeyObject,
  algorithm: SignatureAlgorithm,
  allowWeak: boolean,
): boolean {
  const { type, curve }: KeyKind = KINDS[algorithm];
  const { asymmetricKeyType, asymmetricKeyDetails } = key;
  if (key.type !== "public" || asymmetricKeyType !== type) return false;
  if (type === "ec") return asymmetricKeyDetails?.namedCurve === curve;
  if (type === "rsa") {
    return (asymmetricKeyDetails?.modulusLength ?? 0) >= (allowWeak ? MIN_WEAK_RSA_BITS : MIN_RSA_BITS);
  }
  return true;
}

export interface SignatureForm {
  readonly algorithm: SignatureAlgorithm;
  readonly ecdsaFormat: "der" | "ieee-p1363";
}

/** Returns whether a signature over `content` is valid. Check the key with `isKeyForAlgorithm` first. */
export function isSignatureValid(
  key: KeyObject,
  { algorithm, ecdsaFormat }: SignatureForm,
  content: Buffer,
  signature: Buffer,
): boolean {
  const { type, hash } = KINDS[algorithm];
  return verify(hash, content, type === "ec" ? { key, dsaEncoding: ecdsaFormat } : key, signature);
}
