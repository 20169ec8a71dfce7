import type { Config } from "../../config/schema.ts";
import type { DatabaseSnapshot } from "../../data/backup/database-snapshot.ts";
import { findMasterKey, findNextMasterKey, parseMasterKey } from "../../lib/secrets/master-key.ts";
import {
  openUnderPassphrase,
  sealUnderPassphrase,
  WrongPassphraseError,
} from "../../lib/secrets/passphrase.ts";
import { createSealingKey } from "../../lib/secrets/secret.ts";
import { CommandError, usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import { readSecret } from "../output/prompt.ts";
import { type BackupAbout, MASTER_KEY_PLACE } from "./manifest.ts";

export const PASSPHRASE_VARIABLE = "INLET_BACKUP_PASSPHRASE";
const MIN_CHARACTERS = 12;

/**
 * Reads the passphrase for a new backup from the environment, or asks for it twice.
 *
 * @throws CommandError
 */
export async function choosePassphrase(io: Io): Promise<string> {
  const given = io.env[PASSPHRASE_VARIABLE];
  if (!given && !io.stdin.isTTY) {
    throw usageError(
      `A passphrase is required to encrypt the master key. Set ${PASSPHRASE_VARIABLE}, or use --without-master-key and store the key elsewhere.`,
    );
  }
  const passphrase = given || (await readSecret(io, "Passphrase to encrypt the master key: "));
  if (passphrase.length < MIN_CHARACTERS)
    throw usageError(
      `The passphrase must have at least ${MIN_CHARACTERS} characters, because someone with the file can try many.`,
    );
  if (!given && (await readSecret(io, "Repeat the passphrase: ")) !== passphrase)
    throw usageError("The two passphrases differ.");
  return passphrase;
}

/** Returns all candidates for the database's master key: from the environment variable and from the data directory. */
export async function findMasterKeys(
  { masterKey, newMasterKey }: Pick<Config, "masterKey" | "newMasterKey">,
  dataDir: string,
): Promise<readonly Buffer[]> {
  const files = await Promise.all([findMasterKey(dataDir), findNextMasterKey(dataDir)]);
  return [masterKey, newMasterKey, ...files].filter((key) => key !== undefined);
}

/**
 * Encrypts the master key of a snapshot with the passphrase. Without a passphrase, the result contains only the key's id.
 *
 * @throws CommandError if none of `keys` is the master key of the database
 */
export async function sealMasterKey(
  { masterKeyId: id, isMasterKey }: DatabaseSnapshot,
  keys: readonly Buffer[],
  passphrase: string | undefined,
): Promise<BackupAbout["masterKey"]> {
  if (id === undefined) return null;
  if (passphrase === undefined) return { id, sealed: null };
  const key = keys.find(isMasterKey);
  if (key === undefined) {
    throw new CommandError(
      `The master key of this database (${id}) is neither in the data directory nor in INLET_MASTER_KEY. Add it there, or use --without-master-key.`,
    );
  }
  return { id, sealed: await sealUnderPassphrase(passphrase, key.toString("base64"), MASTER_KEY_PLACE) };
}

/**
 * Source of the master key for a restored gateway.
 * - `file`: `restore` writes the key to the data directory.
 * - `setting`: INLET_MASTER_KEY contains the key.
 * - `apart`: the backup omits the key, so the user must supply it.
 * - `none`: the database never had a key.
 */
export type RestoredKey =
  | { readonly kind: "file"; readonly key: Buffer }
  | { readonly kind: "setting" }
  | { readonly kind: "apart"; readonly id: string }
  | { readonly kind: "none" };

/**
 * Decrypts the master key in a backup.
 *
 * @throws CommandError if the passphrase or INLET_MASTER_KEY does not match the backup
 */
export async function openMasterKey(
  io: Io,
  stored: BackupAbout["masterKey"],
  options: { readonly ofSettings: Buffer | undefined; readonly leaveOut: boolean },
): Promise<RestoredKey> {
  const { ofSettings, leaveOut } = options;
  if (stored === null) return { kind: "none" };
  const { id, sealed } = stored;
  if (ofSettings !== undefined) {
    if (createSealingKey(ofSettings).id === id) return { kind: "setting" };
    throw usageError(`INLET_MASTER_KEY is not the master key of this backup (${id}).`);
  }
  if (sealed === null || leaveOut) return { kind: "apart", id };
  const given = io.env[PASSPHRASE_VARIABLE];
  if (!given && !io.stdin.isTTY) {
    throw usageError(
      `The backup's master key is encrypted with a passphrase. Set ${PASSPHRASE_VARIABLE}, or use --without-master-key and add the key yourself.`,
    );
  }
  const passphrase = given || (await readSecret(io, "Passphrase of the backup: "));
  try {
    const key = parseMasterKey(await openUnderPassphrase(passphrase, sealed, MASTER_KEY_PLACE));
    if (key !== undefined && createSealingKey(key).id === id) return { kind: "file", key };
  } catch (error) {
    if (error instanceof WrongPassphraseError) throw usageError("This is not the passphrase of the backup.");
    throw error;
  }
  throw new CommandError(`The backup's master key does not match its manifest (${id}).`);
}
