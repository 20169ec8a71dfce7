import { randomBytes, scrypt } from "node:crypto";
import { promisify } from "node:util";
import { createSealingKey, OtherKeyError, openSecret, type SealingKey, sealSecret } from "./secret.ts";

/** A text sealed under a key that is made of a passphrase. It may be stored anywhere. */
export interface PassphraseSealed {
  readonly kdf: "scrypt";
  /** scrypt's cost, block size, parallelization (RFC 7914). */
  readonly n: number;
  readonly r: number;
  readonly p: number;
  /** base64url */
  readonly salt: string;
  /** As `sealSecret` has made it. */
  readonly text: string;
}

/** The passphrase is not the one that the text was sealed under. */
export class WrongPassphraseError extends Error {
  override readonly name = "WrongPassphraseError";
}

/** 128 MiB and half a second a guess. */
const COST = { n: 2 ** 17, r: 8, p: 1 } as const;
/** What a text that others have changed may cost us to open: 1 GiB. */
const MAX_MEMORY_BYTES = 2 ** 30;
/** And in time: a minute, for memory bounds the rest. */
const MAX_PARALLELIZATION = 16;
const KEY_BYTES = 32;
const SALT_BYTES = 16;

/** @param context as of `sealSecret` */
export async function sealUnderPassphrase(
  passphrase: string,
  text: string,
  context: string,
): Promise<PassphraseSealed> {
  const salt = randomBytes(SALT_BYTES).toString("base64url");
  const about = { kdf: "scrypt", ...COST, salt } as const;
  return { ...about, text: sealSecret(await keyOf(passphrase, about), text, context) };
}

/** @throws WrongPassphraseError; Error where the text was changed, or would take more memory or time than it may */
export async function openUnderPassphrase(
  passphrase: string,
  sealed: PassphraseSealed,
  context: string,
): Promise<string> {
  const key = await keyOf(passphrase, sealed);
  try {
    return openSecret(key, sealed.text, context);
  } catch (error) {
    if (error instanceof OtherKeyError) throw new WrongPassphraseError("the passphrase is another one");
    throw error;
  }
}

async function keyOf(
  passphrase: string,
  { n, r, p, salt }: Omit<PassphraseSealed, "text">,
): Promise<SealingKey> {
  if (p > MAX_PARALLELIZATION)
    throw new Error("the sealed text would take longer to open than one of Inlet's own");
  const derive = promisify<string, Buffer, number, object, Buffer>(scrypt);
  const options = { N: n, r, p, maxmem: MAX_MEMORY_BYTES };
  // The same text has several spellings in Unicode, and keyboards differ.
  return createSealingKey(
    await derive(passphrase.normalize("NFC"), Buffer.from(salt, "base64url"), KEY_BYTES, options),
  );
}
