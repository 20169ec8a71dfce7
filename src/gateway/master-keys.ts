import type { Config } from "../config/schema.ts";
import type { ChangeSubscriptions } from "../data/changes.ts";
import type { Queryable } from "../data/database.ts";
import { isMasterKeyOf, type Keyring, openKeyring, WrongMasterKeyError } from "../data/keyring/keyring.ts";
import type { Clock } from "../lib/clock.ts";
import {
  adoptNextMasterKey,
  dropMasterKey,
  dropNextMasterKey,
  findNextMasterKey,
  loadOrCreateMasterKey,
} from "../lib/secrets/master-key.ts";
import type { Log } from "../log.ts";

export interface MasterKeys {
  /** 32 bytes. */
  readonly masterKey: Buffer;
  /** The new key, while a key rotation is in progress. The rotation may or may not have replaced `masterKey` yet. */
  readonly newMasterKey: Buffer | undefined;
  /** Directory that contains the key files. `undefined` if the keys come from settings. */
  readonly dataDir: string | undefined;
  /** Whether this start created the key, because no key file existed. */
  readonly isNew?: boolean;
}

/** Reads the keys from the settings or the data directory. The caller must have locked the data directory. */
export async function loadMasterKeys(
  { masterKey, newMasterKey }: Pick<Config, "masterKey" | "newMasterKey">,
  dataDir: string,
): Promise<MasterKeys> {
  if (masterKey) return { masterKey, newMasterKey, dataDir: undefined };
  const next = await findNextMasterKey(dataDir);
  const { key, isNew } = await loadOrCreateMasterKey(dataDir);
  return { masterKey: key, isNew, newMasterKey: next ?? newMasterKey, dataDir };
}

/**
 * Opens the keyring. If a key rotation was interrupted after the database update, also updates the key file. Deletes a newly created key
 * that does not match the database, so that it is not mistaken for the right key.
 *
 * @throws WrongMasterKeyError
 */
export async function openMasterKeyring(db: Queryable, keys: MasterKeys, clock: Clock): Promise<Keyring> {
  const { dataDir, isNew = false, masterKey, newMasterKey } = keys;
  const keyring = await openKeyring({ db, masterKey, newMasterKey, clock }).catch(async (error: unknown) => {
    if (isNew && dataDir !== undefined && error instanceof WrongMasterKeyError) await dropMasterKey(dataDir);
    throw error;
  });
  const next = dataDir === undefined ? undefined : await findNextMasterKey(dataDir);
  if (dataDir !== undefined && next) {
    await ((await isMasterKeyOf(db, next)) ? adoptNextMasterKey(dataDir) : dropNextMasterKey(dataDir));
  }
  return keyring;
}

export type MasterKeyWatch = ReturnType<typeof createMasterKeyWatch>;

const CHANGED = "the master key has changed: restart this gateway with the new key";

/** Detects that another process has rotated the master key while this gateway is running. */
export function createMasterKeyWatch(deps: {
  readonly keyring: Pick<Keyring, "reload">;
  readonly changes: ChangeSubscriptions;
  readonly log: Log;
}) {
  const { keyring, changes, log } = deps;
  let isKnown = true;
  const reload = (): void => {
    keyring.reload().then(
      (known) => {
        if (!known && isKnown) log.error({ event: "master_key.changed" }, CHANGED);
        isKnown = known;
      },
      (error: unknown) =>
        log.warn({ event: "master_key.reload_failed", err: error }, "master key change could not be read"),
    );
  };
  changes.subscribe({
    onChange: ({ kind }) => void (kind === "masterKey" && reload()),
    onReset: reload,
  });
  return { problem: (): string | undefined => (isKnown ? undefined : CHANGED) };
}
