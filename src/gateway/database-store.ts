import type { Config } from "../config.ts";
import type { DatabaseConnection } from "../data/database.ts";
import { startLocalPostgres } from "../data/local-postgres.ts";
import { acquireDataLock } from "../lib/data-lock.ts";
import { loadOrCreateMasterKey } from "../lib/master-key.ts";
import type { Log } from "../log.ts";
import { DataDirInUseError } from "./stores.ts";

/** The database without the bus: that of others, or its own, which ends with it. */
export interface DatabaseStore extends AsyncDisposable {
  readonly database: DatabaseConnection;
  /** 32 bytes. */
  readonly masterKey: Buffer;
}

/** @throws DataDirInUseError; or an Error that says what to do, when its own PostgreSQL does not start. */
export async function openDatabaseStore(
  { databaseUrl, dataDir, masterKey }: Config,
  { log, signal }: { readonly log: Log; readonly signal: AbortSignal },
): Promise<DatabaseStore> {
  await using opening = new AsyncDisposableStack();
  if (databaseUrl !== undefined) {
    // With a database of others the settings have demanded a key.
    const key = masterKey ?? (await loadOrCreateMasterKey(dataDir));
    return { database: { url: databaseUrl }, masterKey: key, async [Symbol.asyncDispose]() {} };
  }
  const lock = acquireDataLock(dataDir);
  if (!lock.ok) throw new DataDirInUseError(lock.error.message);
  const real = opening.use(lock.value).dataDir;
  const postgres = opening.use(await startLocalPostgres({ dataDir: real, log, signal }));
  const key = masterKey ?? (await loadOrCreateMasterKey(real));
  const owned = opening.move();
  return {
    database: postgres.connection,
    masterKey: key,
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}
