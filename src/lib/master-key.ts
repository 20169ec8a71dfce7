import { randomBytes } from "node:crypto";
import { link, open, readFile, rm } from "node:fs/promises";
import { join } from "node:path";

const KEY_BYTES = 32;

/**
 * The master key of a data directory (32 bytes), made on the first call and kept as base64 in `<dataDir>/master.key`
 * (0600). The data lock must be held. Throws when the file is not such a key: a new one would make every sealed secret
 * unreadable.
 */
export async function loadOrCreateMasterKey(dataDir: string): Promise<Buffer> {
  const file = join(dataDir, "master.key");
  const existing = await readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (existing === undefined) return createKey(dataDir, file);
  const key = parseMasterKey(existing.trim());
  if (!key)
    throw new Error(
      `${file} does not hold a master key (32 bytes as base64 or hex); restore it from a backup`,
    );
  return key;
}

/** 32 bytes as 64 hexadecimal digits, base64 or base64url; undefined for anything else. */
export function parseMasterKey(text: string): Buffer | undefined {
  if (/^[0-9a-f]{64}$/i.test(text)) return Buffer.from(text, "hex");
  if (!/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined;
  const key = Buffer.from(text, "base64");
  return key.length === KEY_BYTES ? key : undefined;
}

/** On disk, directory entry included, before anything is sealed with it. */
async function createKey(dataDir: string, file: string): Promise<Buffer> {
  const key = randomBytes(KEY_BYTES);
  const partial = `${file}.new`;
  await rm(partial, { force: true });
  const handle = await open(partial, "wx", 0o600);
  try {
    await handle.writeFile(`${key.toString("base64")}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await link(partial, file);
  await rm(partial);
  const directory = await open(dataDir, "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
  return key;
}
