import { createCipheriv, createDecipheriv, createHash, randomBytes } from "node:crypto";

const FORMAT = "s1";
const ALGORITHM = "aes-256-gcm";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const KEY_BYTES = 32;

/** An encryption key with an id. Every encrypted text contains the id of its key. */
export interface SealingKey {
  readonly id: string;
  readonly bytes: Buffer;
}

/** Thrown when a text was encrypted with a different key. */
export class OtherKeyError extends Error {
  override readonly name = "OtherKeyError";
}

/**
 * Creates an encryption key, whose id is derived from its bytes.
 *
 * @throws Error if the key does not have 32 bytes
 */
export function createSealingKey(bytes: Buffer): SealingKey {
  if (bytes.length !== KEY_BYTES)
    throw new Error(`a sealing key must have ${KEY_BYTES} bytes, not ${bytes.length}`);
  const id = createHash("sha256").update("inlet sealing key\0").update(bytes).digest("hex").slice(0, 16);
  return { id, bytes };
}

/**
 * Encrypts a text with AES-256-GCM. The result has the form `s1.<key id>.<nonce, ciphertext, tag in base64url>`. `context` names the place
 * where the text is stored, and is authenticated as additional data (AAD). If the result is copied to another place, it cannot be decrypted
 * there.
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
 * Decrypts a text that was encrypted with the same key and context.
 *
 * @throws OtherKeyError if the key differs
 * @throws Error if the text was modified or copied from another place. Messages contain neither the key nor the text
 */
export function openSecret(key: SealingKey, sealed: string, context: string): string {
  const [format, keyId, text, ...rest] = sealed.split(".");
  if (format !== FORMAT || keyId === undefined || text === undefined || rest.length > 0) {
    throw new Error(`the stored value of ${context} is not a sealed secret`);
  }
  if (keyId !== key.id)
    throw new OtherKeyError(
      `the secret of ${context} is encrypted under key ${keyId}, not under key ${key.id}`,
    );
  const bytes = Buffer.from(text, "base64url");
  if (bytes.length < NONCE_BYTES + TAG_BYTES) throw new Error(`the secret of ${context} is truncated`);
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
    throw new Error(`the secret of ${context} was modified or belongs to another row`, { cause: error });
  }
}

const associatedData = (keyId: string, context: string): Buffer =>
  Buffer.from(`${FORMAT}.${keyId}.${context}`, "utf8");
