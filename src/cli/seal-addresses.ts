import type { Config } from "../config.ts";
import { endPlainAddresses } from "../data/channels/seal-addresses.ts";
import { openDatabase } from "../data/database.ts";
import { migrate } from "../data/migrate.ts";
import type { Print } from "../gateway/greeting.ts";
import { openMasterKeyring } from "../gateway/master-keys.ts";
import { openDatabaseStore } from "../gateway/stores.ts";
import type { Log } from "../log.ts";
import { EXIT } from "./exit.ts";
import { openLog, print, runToExit, stopOnSignals } from "./process.ts";

/** `--seal-addresses`. Answers the exit code. */
export async function sealAllAddresses(config: Config): Promise<number> {
  const log = await openLog(config, process.stderr);
  const signal = stopOnSignals(log);
  return runToExit({ log, signal, failure: "The addresses are kept as before" }, async () => {
    await runSealing(config, { log, signal, print });
    return EXIT.done;
  });
}

/**
 * Ends the time in which channels' addresses are also kept as they are, for gateways of a release from before. To be called once no
 * such gateway runs: it would no longer find channels. Gateways of this release run on.
 *
 * @throws DataDirInUseError where a gateway runs on servers of its own, which has done it at its start; what a start throws
 */
export async function runSealing(
  config: Config,
  { log, signal, print }: { readonly log: Log; readonly signal: AbortSignal; readonly print: Print },
): Promise<void> {
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
