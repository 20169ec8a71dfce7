import { randomBytes, scrypt } from "node:crypto";
import { promisify } from "node:util";
import { createSealingKey, OtherKeyError, openSecret, type SealingKey, sealSecret } from "./secret.ts";

/** A text encrypted with a key that is derived from a passphrase. The encrypted text is safe to store anywhere. */
export interface PassphraseSealed {
  readonly kdf: "scrypt";
  /** The scrypt parameters (RFC 7914): cost `n`, block size `r` and parallelization `p`. */
  readonly n: number;
  readonly r: number;
  readonly p: number;
  /** Encoded in base64url. */
  readonly salt: string;
  /** The text in the format of `sealSecret`. */
  readonly text: string;
}

/** Thrown when a text was encrypted with a different passphrase. */
export class WrongPassphraseError extends Error {
  override readonly name = "WrongPassphraseError";
}

/** scrypt parameters for newly encrypted texts. Each guess of a passphrase then takes 128 MiB and half a second. */
const COST = { n: 2 ** 17, r: 8, p: 1 } as const;
/**
 * Memory limit for decryption, in bytes. Without a limit, an attacker could modify the stored scrypt parameters to exhaust the
 * memory.
 */
const MAX_MEMORY_BYTES = 2 ** 30;
/** Maximum scrypt parallelization for decryption. Together with the memory limit, this keeps decryption below one minute. */
const MAX_PARALLELIZATION = 16;
const KEY_BYTES = 32;
const SALT_BYTES = 16;

/**
 * Encrypts a text with a passphrase.
 *
 * @param context name of the place where the encrypted text is stored, as in `sealSecret`
 */
export async function sealUnderPassphrase(
  passphrase: string,
  text: string,
  context: string,
): Promise<PassphraseSealed> {
  const salt = randomBytes(SALT_BYTES).toString("base64url");
  const about = { kdf: "scrypt", ...COST, salt } as const;
  return { ...about, text: sealSecret(await deriveKey(passphrase, about), text, context) };
}

/**
 * Decrypts a text with a passphrase.
 *
 * @throws WrongPassphraseError if the passphrase is wrong
 * @throws Error if the text was modified, or its scrypt parameters exceed the limits
 */
export async function openUnderPassphrase(
  passphrase: string,
  sealed: PassphraseSealed,
  context: string,
): Promise<string> {
  const key = await deriveKey(passphrase, sealed);
  try {
    return openSecret(key, sealed.text, context);
  } catch (error) {
    if (error instanceof OtherKeyError) throw new WrongPassphraseError("the passphrase is wrong");
    throw error;
  }
}

async function deriveKey(
  passphrase: string,
  { n, r, p, salt }: Omit<PassphraseSealed, "text">,
): Promise<SealingKey> {
  if (p > MAX_PARALLELIZATION)
    throw new Error(
      `the scrypt parallelization of the encrypted text exceeds ${MAX_PARALLELIZATION}; Inlet did not create this text`,
    );
  const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);
  const options = { N: n, r, p, maxmem: MAX_MEMORY_BYTES };
  // Normalize the passphrase, because different keyboards may encode the same characters differently in Unicode.
  return createSealingKey(
    await derive(passphrase.normalize("NFC"), Buffer.from(salt, "base64url"), KEY_BYTES, options),
  );
}
