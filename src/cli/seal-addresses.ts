import type { Config } from "../config/schema.ts";
import { endPlainAddresses } from "../data/channels/seal-addresses.ts";
import { openDatabase } from "../data/database.ts";
import { migrate } from "../data/migrate.ts";
import { openMasterKeyring } from "../gateway/master-keys.ts";
import { openDatabaseStore } from "../gateway/stores.ts";
import { EXIT } from "./exit.ts";
import { type CommandRun, runToExit } from "./process.ts";

export const sealAllAddresses = (config: Config): Promise<number> =>
  runToExit(config, "The plain-text addresses were not removed", async (given) => {
    await runSealing(config, given);
    return EXIT.done;
  });

/**
 * Removes channel addresses that are stored in plain text. Only gateways of earlier versions use them to find channels, so run
 * this once no such gateway is running.
 *
 * @throws DataDirInUseError if a gateway is running on the embedded servers. That gateway removed the addresses when it started
 */
export async function runSealing(config: Config, { log, signal, print }: CommandRun): Promise<void> {
  await using store = await openDatabaseStore(config, { log, signal });
  await migrate({ connection: store.database, log });
  // Set no timeout, because the number of rows is unknown.
  await using database = openDatabase({
    connection: store.database,
    maxConnections: 1,
    statementTimeoutMs: 0,
  });
  const { db } = database;
  const keyring = await openMasterKeyring(db, store.keys, Date.now);
  await db.transaction().execute((trx) => endPlainAddresses(trx, keyring));
  await print(
    "Plain-text channel addresses are removed. Gateways of earlier versions no longer start on this database.\n",
  );
}
