import type { Config } from "../config.ts";
import { endPlainAddresses } from "../data/channels/seal-addresses.ts";
import { openDatabase } from "../data/database.ts";
import { migrate } from "../data/migrate.ts";
import { openMasterKeyring } from "../gateway/master-keys.ts";
import { openDatabaseStore } from "../gateway/stores.ts";
import { EXIT } from "./exit.ts";
import { type CommandRun, runToExit } from "./process.ts";

/** `--seal-addresses`. Answers the exit code. */
export const sealAllAddresses = (config: Config): Promise<number> =>
  runToExit(config, "The addresses are kept as before", async (given) => {
    await runSealing(config, given);
    return EXIT.done;
  });

/**
 * Ends the time in which channels' addresses are also kept as they are, for gateways of a release from before. To be called once no
 * such gateway runs: it would no longer find channels. Gateways of this release run on.
 *
 * @throws DataDirInUseError where a gateway runs on servers of its own, which has done it at its start; what a start throws
 */
export async function runSealing(config: Config, { log, signal, print }: CommandRun): Promise<void> {
  await using store = await openDatabaseStore(config, { log, signal });
  await migrate({ connection: store.database, log });
  // However many rows there are.
  await using database = openDatabase({
    connection: store.database,
    maxConnections: 1,
    statementTimeoutMs: 0,
  });
  const { db } = database;
  const keyring = await openMasterKeyring(db, store.keys, Date.now);
  await db.transaction().execute((trx) => endPlainAddresses(trx, keyring));
  await print(
    "Addresses of channels are kept sealed only. Gateways of releases before this one no longer start.\n",
  );
}
