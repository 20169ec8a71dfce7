import type { DatabaseSnapshot } from "../../data/backup/database-snapshot.ts";
import { findMasterKey, findNextMasterKey, parseMasterKey } from "../../lib/secrets/master-key.ts";
import {
  openUnderPassphrase,
  sealUnderPassphrase,
  WrongPassphraseError,
} from "../../lib/secrets/passphrase.ts";
import { createSealingKey } from "../../lib/secrets/secret.ts";
import type { Config } from "../../settings.ts";
import { CommandError, usageError } from "../exit.ts";
import type { Io } from "../io.ts";
import { readSecret } from "../output/prompt.ts";
import { type BackupAbout, MASTER_KEY_PLACE } from "./manifest.ts";

export const PASSPHRASE_VARIABLE = "INLET_BACKUP_PASSPHRASE";
const MIN_CHARACTERS = 12;

/** A passphrase for a new backup, twice the same. @throws CommandError */
export async function choosePassphrase(io: Io): Promise<string> {
  const given = io.env[PASSPHRASE_VARIABLE];
  if (!given && !io.stdin.isTTY) {
    throw usageError(
      `A backup holds the master key sealed under a passphrase: set ${PASSPHRASE_VARIABLE}, or leave the key out by --without-master-key and keep it elsewhere.`,
    );
  }
  const passphrase =
    given || (await readSecret(io, "Passphrase that the master key is to be sealed under: "));
  if (passphrase.length < MIN_CHARACTERS)
    throw usageError(
      `A passphrase has ${MIN_CHARACTERS} characters at least: a thief of the file can try many.`,
    );
  if (!given && (await readSecret(io, "The same once more: ")) !== passphrase)
    throw usageError("The two are not the same.");
  return passphrase;
}

/** All that may be the master key of the database: of the settings, and in the data directory. */
export async function findMasterKeys(
  { masterKey, newMasterKey }: Pick<Config, "masterKey" | "newMasterKey">,
  dataDir: string,
): Promise<readonly Buffer[]> {
  const files = await Promise.all([findMasterKey(dataDir), findNextMasterKey(dataDir)]);
  return [masterKey, newMasterKey, ...files].filter((key) => key !== undefined);
}

/**
 * The master key of a snapshot, sealed under the passphrase, or left out.
 *
 * @throws CommandError where none of the keys is that of the database
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
      `The master key of this database (${id}) is neither in the data directory nor in INLET_MASTER_KEY: put it there, or leave it out by --without-master-key.`,
    );
  }
  return { id, sealed: await sealUnderPassphrase(passphrase, key.toString("base64"), MASTER_KEY_PLACE) };
}

/** How a restored gateway comes to its master key: `file`, this one is to be put into the data directory. */
export type RestoredKey =
  | { readonly kind: "file"; readonly key: Buffer }
  | { readonly kind: "setting" }
  | { readonly kind: "apart"; readonly id: string }
  | { readonly kind: "none" };

/** @throws CommandError where the passphrase, or the key of the settings, is another one */
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
      `The backup's master key is sealed under a passphrase: set ${PASSPHRASE_VARIABLE}, or restore by --without-master-key and put the key there yourself.`,
    );
  }
  const passphrase = given || (await readSecret(io, "Passphrase of the backup: "));
  try {
    const key = parseMasterKey(await openUnderPassphrase(passphrase, sealed, MASTER_KEY_PLACE));
    if (key !== undefined && createSealingKey(key).id === id) return { kind: "file", key };
  } catch (error) {
    if (error instanceof WrongPassphraseError)
      throw usageError("The passphrase is not the one that this backup's master key was sealed under.");
    throw error;
  }
  throw new CommandError(`The backup holds another master key than it says (${id}).`);
}
