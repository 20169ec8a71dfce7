import type { Config } from "../config.ts";
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

/** The master keys that a gateway starts with. */
export interface MasterKeys {
  /** 32 bytes. */
  readonly masterKey: Buffer;
  /** The one that comes in its place, or has. */
  readonly newMasterKey: Buffer | undefined;
  /** Where they are files; undefined: settings. */
  readonly dataDir: string | undefined;
  /** True where the data directory had no key, and this start has made one. */
  readonly isNew?: boolean;
}

/** From the settings, else from the data directory, whose lock must be held. */
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
 * Opens the keyring, and ends a change of the key that was cut off between the database and the file. A key that was made for a
 * database which has another is not left behind, where it would stand in for the right one.
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

const CHANGED = "the master key was changed: restart this gateway with the new one";

/** Whether a running gateway still has the master key of the database. */
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
        log.warn({ event: "master_key.reload_failed", err: error }, "changed master key cannot be read"),
    );
  };
  changes.subscribe({
    onChange: ({ kind }) => void (kind === "masterKey" && reload()),
    onReset: reload,
  });
  /** `problem` is for the operator; undefined: all is well. */
  return { problem: (): string | undefined => (isKnown ? undefined : CHANGED) };
}
