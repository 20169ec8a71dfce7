import type { Config } from "../config.ts";
import { openDatabase } from "../data/database.ts";
import { rotateMasterKey } from "../data/keyring/master-key-rotation.ts";
import { migrate } from "../data/migrate.ts";
import { loadMasterKeys, openMasterKeyring } from "../gateway/master-keys.ts";
import { openDatabaseStore } from "../gateway/stores.ts";
import { adoptNextMasterKey, prepareNextMasterKey } from "../lib/secrets/master-key.ts";
import { EXIT } from "./exit.ts";
import { type CommandRun, runToExit } from "./process.ts";

/** `--rotate-master-key`. Answers the exit code. */
export const rotate = (config: Config): Promise<number> =>
  runToExit(config, "The change of the master key has not ended; call it again", async (given) => {
    await runRotation(config, given);
    return EXIT.done;
  });

/**
 * Puts another master key in the place of the one of now: in the database in one transaction, and then, where keys are files, in the
 * data directory, where the new one lies before the transaction begins. Cut off at any point it is done by calling it again, and
 * every start finds a key that fits.
 *
 * @throws DataDirInUseError where a gateway runs on servers of its own; what a start throws
 */
export async function runRotation(config: Config, { log, signal, print }: CommandRun): Promise<void> {
  await using opening = new AsyncDisposableStack();
  const store = opening.use(await openDatabaseStore(config, { log, signal }));
  await migrate({ connection: store.database, log });
  // However many rows there are, and however long their writers hold them.
  const { db } = opening.use(
    openDatabase({ connection: store.database, maxConnections: 1, statementTimeoutMs: 0 }),
  );
  // A rotation that was cut off is ended first.
  await openMasterKeyring(db, store.keys, Date.now);
  const { dataDir } = store.keys;
  const { masterKey: from } = dataDir === undefined ? store.keys : await loadMasterKeys(config, dataDir);
  if (config.newMasterKey?.equals(from)) {
    await print("Nothing to do: INLET_NEW_MASTER_KEY is the master key already.\n");
    return;
  }
  const to =
    dataDir === undefined ? config.newMasterKey : await prepareNextMasterKey(dataDir, config.newMasterKey);
  if (to === undefined) throw new Error("INLET_NEW_MASTER_KEY is not set");
  const rotation = await rotateMasterKey({ db, from, to, signal });
  if (dataDir !== undefined) await adoptNextMasterKey(dataDir);
  const where =
    dataDir === undefined ? "set INLET_MASTER_KEY to the new key" : "master.key holds the new key";
  await print(
    rotation.kind === "already"
      ? `Nothing to do: the new master key is in force already; ${where}.\n`
      : `The new master key is in force, ${rotation.resealed} secrets are sealed under it; ${where}. Gateways that were not started with both keys must be restarted.\n`,
  );
}
