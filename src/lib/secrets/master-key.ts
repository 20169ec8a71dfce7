import { randomBytes } from "node:crypto";
import { link, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { syncDirectory } from "../sync-directory.ts";

const KEY_BYTES = 32;
const KEY_FILE = "master.key";
const NEXT_FILE = "master.key.next";

/**
 * Loads the master key (32 bytes) from `<dataDir>/master.key`. If the file is missing, creates it with mode 0600 and a random key
 * in base64. The caller must hold the lock of the data directory.
 *
 * @throws Error if the file is not a valid key. The file is not replaced, because a new key would make all encrypted secrets
 *   unreadable
 */
export async function loadOrCreateMasterKey(
  dataDir: string,
): Promise<{ readonly key: Buffer; readonly isNew: boolean }> {
  const file = join(dataDir, KEY_FILE);
  const existing = await readKey(file);
  if (existing) return { key: existing, isNew: false };
  const key = randomBytes(KEY_BYTES);
  const partial = await writeSynced(file, key);
  // Use a link instead of a rename, which would replace a key that another process has just created.
  await link(partial, file);
  await rm(partial);
  await syncDirectory(dataDir);
  return { key, isNew: true };
}

/**
 * Returns the master key of a data directory, or `undefined` if there is none.
 *
 * @throws Error if the file is not a valid key
 */
export const findMasterKey = (dataDir: string): Promise<Buffer | undefined> =>
  readKey(join(dataDir, KEY_FILE));

/** Stores a master key in a data directory that has none. Resolves when the key is safely on disk. */
export const putMasterKey = (dataDir: string, key: Buffer): Promise<void> => putKey(dataDir, KEY_FILE, key);

/** Removes a master key that was created but is not used. */
export async function dropMasterKey(dataDir: string): Promise<void> {
  await rm(join(dataDir, KEY_FILE), { force: true });
  await syncDirectory(dataDir);
}

/**
 * Prepares a rotation of the master key. Stores the next key on disk before any secret is encrypted under it. The file remains
 * until `adoptNextMasterKey` completes the rotation or `dropNextMasterKey` cancels it.
 *
 * @param key a random key by default. If a next key is already stored, that key is used instead
 */
export async function prepareNextMasterKey(
  dataDir: string,
  key: Buffer = randomBytes(KEY_BYTES),
): Promise<Buffer> {
  const existing = await findNextMasterKey(dataDir);
  if (existing) return existing;
  await putKey(dataDir, NEXT_FILE, key);
  return key;
}

/** Returns `undefined` if no rotation is in progress. */
export const findNextMasterKey = (dataDir: string): Promise<Buffer | undefined> =>
  readKey(join(dataDir, NEXT_FILE));

/** Completes a key rotation: atomically replaces the current master key with the next one. */
export async function adoptNextMasterKey(dataDir: string): Promise<void> {
  await rename(join(dataDir, NEXT_FILE), join(dataDir, KEY_FILE));
  await syncDirectory(dataDir);
}

export const dropNextMasterKey = (dataDir: string): Promise<void> =>
  rm(join(dataDir, NEXT_FILE), { force: true });

/** Parses a 32-byte key in hexadecimal, base64 or base64url. Returns `undefined` for any other text. */
export function parseMasterKey(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const key = Buffer.from(text, "base64");
  return key.length === KEY_BYTES ? key : undefined;
}

async function readKey(file: string): Promise<Buffer | undefined> {
  const text = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (text === undefined) return undefined;
  const key = parseMasterKey(text.trim());
  if (key) return key;
  throw new Error(
    `${file} does not contain a master key (32 bytes in base64 or hex); restore it from a backup`,
  );
}

async function putKey(dataDir: string, name: string, key: Buffer): Promise<void> {
  const file = join(dataDir, name);
  await rename(await writeSynced(file, key), file);
  await syncDirectory(dataDir);
}

/** Writes the key to `<file>.new`, syncs the file to disk and returns its path. */
async function writeSynced(file: string, key: Buffer): Promise<string> {
  const partial = `${file}.new`;
  await rm(partial, { force: true });
  await writeFile(partial, `${key.toString("base64")}\n`, { flag: "wx", mode: 0o600, flush: true });
  return partial;
}
