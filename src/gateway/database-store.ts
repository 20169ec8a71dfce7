import type { Config } from "../config.ts";
import type { DatabaseConnection } from "../data/database.ts";
import { startLocalPostgres } from "../data/local-postgres.ts";
import { acquireDataLock } from "../lib/data-lock.ts";
import type { Log } from "../log.ts";
import { loadMasterKeys, type MasterKeys } from "./master-keys.ts";
import { DataDirInUseError } from "./stores.ts";

/** The database without the bus: that of others, or its own, which ends with it. */
export interface DatabaseStore extends AsyncDisposable {
  readonly database: DatabaseConnection;
  readonly keys: MasterKeys;
}

/** @throws DataDirInUseError; or an Error that says what to do, when its own PostgreSQL does not start. */
export async function openDatabaseStore(
  config: Config,
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
): Promise<DatabaseStore> {
  const { databaseUrl, dataDir } = config;
  await using opening = new AsyncDisposableStack();
  if (databaseUrl !== undefined) {
    // With a database of others the settings have demanded a key.
    const keys = await loadMasterKeys(config, dataDir);
    return { database: { url: databaseUrl }, keys, async [Symbol.asyncDispose]() {} };
  }
  const lock = acquireDataLock(dataDir);
  if (!lock.ok) throw new DataDirInUseError(lock.error.message);
  const real = opening.use(lock.value).dataDir;
  const postgres = opening.use(await startLocalPostgres({ dataDir: real, log, signal }));
  const keys = await loadMasterKeys(config, real);
  const owned = opening.move();
  return {
    database: postgres.connection,
    keys,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
