import type { Config } from "../config/schema.ts";
import { createApiKey } from "../data/accounts/api-keys.ts";
import { recordAudit } from "../data/accounts/audit.ts";
import { operatorOf } from "../data/accounts/audit-entry.ts";
import { openDatabase, type Trx } from "../data/database.ts";
import { openDatabaseForCommand } from "../gateway/stores.ts";
import type { StoresRun } from "./commands/machine.ts";
import { EXIT, type ExitCode } from "./exit.ts";

export interface NewKeyOptions {
  readonly name: string;
  readonly permissions: readonly string[];
  readonly expiresAt: Date | null;
}

/** Creates an API key for the operator's organization, and returns the exit code. Also works while a gateway is running. */
export async function createKey(
  config: Config,
  options: NewKeyOptions,
  { log, signal, print }: StoresRun,
): Promise<ExitCode> {
  await using store = await openDatabaseForCommand(config, { log, signal });
  await using database = openDatabase({ connection: store.database, maxConnections: 1 });
  const made = await database.db.transaction().execute((trx) => createFor(trx, options, Date.now()));
  if (made === undefined) {
    await print(
      "No API key was created: there is no organization yet. Start the gateway once to create an organization with a key.\n",
    );
    return EXIT.failed;
  }
  await print(`${made}\n`);
  return EXIT.done;
}

/** Creates and returns a key. Returns `undefined` if the gateway was never started. */
async function createFor(trx: Trx, options: NewKeyOptions, nowMs: number): Promise<string | undefined> {
  const columns = ["organizationId", "spaceId", "accountId"] as const;
  const { organizationId, spaceId, accountId } = await trx
    .selectFrom("cluster")
    .select(columns)
    .executeTakeFirstOrThrow();
  if (organizationId === null || accountId === null) return undefined;
  const { id, token } = await createApiKey(trx, { ...options, organizationId, spaceId, accountId }, nowMs);
  const entry = { action: "create", entity: "apiKey", id } as const;
  await recordAudit(trx, operatorOf(organizationId), entry, nowMs);
  return token;
}
