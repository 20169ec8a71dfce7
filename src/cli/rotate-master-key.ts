import type { Config } from "../config/schema.ts";
import { openDatabase, type Queryable } from "../data/database.ts";
import { rotateMasterKey } from "../data/keyring/master-key-rotation.ts";
import { migrate } from "../data/migrate.ts";
import { loadMasterKeys, openMasterKeyring } from "../gateway/master-keys.ts";
import { openDatabaseStore } from "../gateway/stores.ts";
import { adoptNextMasterKey, prepareNextMasterKey } from "../lib/secrets/master-key.ts";
import type { StoresRun } from "./commands/machine.ts";
import { EXIT, type ExitCode } from "./exit.ts";

/**
 * Replaces the master key and re-encrypts all secrets in one database transaction.
 *
 * A key file is written before the transaction and replaces the old file after it. At every point, a gateway can start with one
 * of the two keys. Running the command again completes an interrupted rotation.
 *
 * @throws DataDirInUseError if a gateway is running on the embedded servers of this data directory
 */
export async function rotate(config: Config, { log, signal, print }: StoresRun): Promise<ExitCode> {
  await using opening = new AsyncDisposableStack();
  const store = opening.use(await openDatabaseStore(config, { log, signal }));
  const openKeyring = (from: Queryable) => openMasterKeyring(from, store.keys, Date.now);
  await migrate({ connection: store.database, log, openKeyring });
  // No timeout, because the number of rows is unknown and other transactions may lock some of them.
  const { db } = opening.use(
    openDatabase({ connection: store.database, maxConnections: 1, statementTimeoutMs: 0 }),
  );
  // Complete an interrupted rotation before starting a new one.
  await openKeyring(db);
  const { dataDir } = store.keys;
  const { masterKey: from } = dataDir === undefined ? store.keys : await loadMasterKeys(config, dataDir);
  if (config.newMasterKey?.equals(from)) {
    await print("No change: INLET_NEW_MASTER_KEY is already the master key.\n");
    return EXIT.done;
  }
  const to =
    dataDir === undefined ? config.newMasterKey : await prepareNextMasterKey(dataDir, config.newMasterKey);
  if (to === undefined) throw new Error("INLET_NEW_MASTER_KEY is not set");
  const rotation = await rotateMasterKey({ db, from, to, signal });
  if (dataDir !== undefined) await adoptNextMasterKey(dataDir);
  const where =
    dataDir === undefined ? "set INLET_MASTER_KEY to the new key" : "master.key contains the new key";
  await print(
    rotation.kind === "already"
      ? `No change: the new master key is already active; ${where}.\n`
      : `The new master key is active and encrypts ${rotation.resealed} secrets; ${where}. Restart gateways that were not started with both keys.\n`,
  );
  return EXIT.done;
}
