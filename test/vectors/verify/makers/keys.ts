import { readFileSync } from "node:fs";
import type { Pair } from "./kit.ts";

interface KeyPair {
  readonly private: string;
  readonly public: string;
}

interface Keys {
  readonly rsa: readonly [Certified, Certified, Certified];
  readonly ec: readonly [KeyPair, KeyPair, KeyPair];
  readonly ed25519: readonly [KeyPair, KeyPair, KeyPair];
}
type Certified = KeyPair & { readonly certificate: string };

/** Key pairs only for these vectors: RSA with 2048 bits, P-256 and Ed25519. The certificates are valid until 2045. */
export const KEYS: Keys = JSON.parse(readFileSync(new URL("./keys.json", import.meta.url), "utf8"));

/** Creates secrets that are public keys, each with the private key with which the provider signs. */
export const publicSecrets = (
  keys: readonly [KeyPair, KeyPair, KeyPair],
  write: (publicPem: string) => string = (pem) => pem,
): readonly [Pair, Pair, Pair] => {
  const pairOf = (pair: KeyPair): Pair => ({ secret: write(pair.public), key: pair.private });
  return [pairOf(keys[0]), pairOf(keys[1]), pairOf(keys[2])];
};

/** Returns the DER bytes of a PEM text, in base64. */
export const derOf = (pem: string): string => pem.replace(/-----[^-]+-----/g, "").replace(/\s+/g, "");
/** Returns the 32 raw bytes of an Ed25519 public key. */
export const rawEd25519 = (pem: string): Buffer => Buffer.from(derOf(pem), "base64").subarray(-32);
