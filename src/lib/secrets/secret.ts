import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

const FORMAT = "s1";
const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** A key that seals, and the name by which a sealed text refers to it. */
export interface SealingKey {
  readonly id: string;
  readonly bytes: Buffer;
}

/** A text is sealed under another key than the one given. */
export class OtherKeyError extends Error {
  override readonly name = "OtherKeyError";
}

/** The key with the id that follows from its bytes. @throws Error when they are not 32. */
export function createSealingKey(bytes: Buffer): SealingKey {
  if (bytes.length !== KEY_BYTES)
    throw new Error(`a sealing key has ${KEY_BYTES} bytes, not ${bytes.length}`);
  const id = createHash("sha256").update("inlet sealing key\0").update(bytes).digest("hex").slice(0, 16);
  return { id, bytes };
}

/**
 * Seals a text by AES-256-GCM: `s1.<key id>.<nonce, ciphertext, tag in base64url>`. `context` names the place that the text is
 * for; it is authenticated, not stored: moved elsewhere, the text does not open.
 */
export function sealSecret(key: SealingKey, plaintext: string, context: string): string {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, key.bytes, nonce, { authTagLength: TAG_BYTES });
  cipher.setAAD(associatedData(key.id, context));
  const sealed = Buffer.concat([
    nonce,
    cipher.update(plaintext, "utf8"),
    cipher.final(),
    cipher.getAuthTag(),
  ]);
  return `${FORMAT}.${key.id}.${sealed.toString("base64url")}`;
}

/**
 * Opens a secret that `sealSecret` made under the same key for the same context.
 *
 * @throws OtherKeyError, or another Error where it was changed or moved; no message holds key or text.
 */
export function openSecret(key: SealingKey, sealed: string, context: string): string {
  const [format, keyId, text, ...rest] = sealed.split(".");
  if (format !== FORMAT || keyId === undefined || text === undefined || rest.length > 0) {
    throw new Error(`what is kept for ${context} is not a sealed secret`);
  }
  if (keyId !== key.id)
    throw new OtherKeyError(`the secret of ${context} is sealed under key ${keyId}, not ${key.id}`);
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new Error(`the secret of ${context} is cut short`);
  const decipher = createDecipheriv(ALGORITHM, key.bytes, bytes.subarray(0, NONCE_BYTES), {
    authTagLength: TAG_BYTES,
  });
  decipher.setAAD(associatedData(keyId, context));
  decipher.setAuthTag(bytes.subarray(-TAG_BYTES));
  try {
    const opened = Buffer.concat([
      decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)),
      decipher.final(),
    ]);
    return opened.toString("utf8");
  } catch (error) {
    throw new Error(`the secret of ${context} was changed, or is another row's`, { cause: error });
  }
}

const associatedData = (keyId: string, context: string): Buffer =>
  Buffer.from(`${FORMAT}.${keyId}.${context}`, "utf8");
