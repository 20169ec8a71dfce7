import { randomBytes } from "node:crypto";
import { link, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

const KEY_BYTES = 32;
const KEY_FILE = "master.key";
const NEXT_FILE = "master.key.next";

/**
 * The master key of a data directory (32 bytes), made on the first call and kept as base64 in `<dataDir>/master.key`
 * (0600). The data lock must be held. Throws when the file is not such a key: a new one would make every sealed secret
 * unreadable.
 */
export async function loadOrCreateMasterKey(
  dataDir: string,
): Promise<{ readonly key: Buffer; readonly isNew: boolean }> {
  const file = join(dataDir, KEY_FILE);
  const existing = await readKey(file);
  if (existing) return { key: existing, isNew: false };
  const key = randomBytes(KEY_BYTES);
  const partial = await writeSynced(file, key);
  // Not a rename: a key that has come to be there meanwhile is never replaced.
  await link(partial, file);
  await rm(partial);
  await syncDirectory(dataDir);
  return { key, isNew: true };
}

/** The master key of a data directory; undefined where it has none. @throws as `loadOrCreateMasterKey` does */
export const findMasterKey = (dataDir: string): Promise<Buffer | undefined> =>
  readKey(join(dataDir, KEY_FILE));

/** Puts a key into a data directory that has none, on disk when it resolves. */
export async function putMasterKey(dataDir: string, key: Buffer): Promise<void> {
  const file = join(dataDir, KEY_FILE);
  await rename(await writeSynced(file, key), file);
  await syncDirectory(dataDir);
}

/** Takes a key away that was made for nothing. */
export async function dropMasterKey(dataDir: string): Promise<void> {
  await rm(join(dataDir, KEY_FILE), { force: true });
  await syncDirectory(dataDir);
}

/**
 * The key that the one of the data directory is about to be changed to, on disk before anything is sealed with it. It stays beside
 * the key until `adoptNextMasterKey`, or `dropNextMasterKey` where nothing came of the change.
 *
 * @param key where none is given one is made; one that is there already goes before
 */
export async function prepareNextMasterKey(
  dataDir: string,
  key: Buffer = randomBytes(KEY_BYTES),
): Promise<Buffer> {
  const existing = await findNextMasterKey(dataDir);
  if (existing) return existing;
  const file = join(dataDir, NEXT_FILE);
  await rename(await writeSynced(file, key), file);
  await syncDirectory(dataDir);
  return key;
}

/** The key that a change which was begun would put in place; undefined where none was. */
export const findNextMasterKey = (dataDir: string): Promise<Buffer | undefined> =>
  readKey(join(dataDir, NEXT_FILE));

/** Puts the next key in the place of the one of before, at once and for good. */
export async function adoptNextMasterKey(dataDir: string): Promise<void> {
  await rename(join(dataDir, NEXT_FILE), join(dataDir, KEY_FILE));
  await syncDirectory(dataDir);
}

export const dropNextMasterKey = (dataDir: string): Promise<void> =>
  rm(join(dataDir, NEXT_FILE), { force: true });

/** 32 bytes as 64 hexadecimal digits, base64 or base64url; undefined for anything else. */
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
  throw new Error(`${file} does not hold a master key (32 bytes as base64 or hex); restore it from a backup`);
}

/** Writes the key beside the file, on disk when it resolves; answers where. */
async function writeSynced(file: string, key: Buffer): Promise<string> {
  const partial = `${file}.new`;
  await rm(partial, { force: true });
  await writeFile(partial, `${key.toString("base64")}\n`, { flag: "wx", mode: 0o600, flush: true });
  return partial;
}

async function syncDirectory(path: string): Promise<void> {
  await using directory = await open(path, "r");
  await directory.sync();
}
