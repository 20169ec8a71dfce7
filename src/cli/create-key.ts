import type { Config } from "../config.ts";
import { createApiKey } from "../data/accounts/api-keys.ts";
import { recordAudit } from "../data/accounts/audit.ts";
import { operatorOf } from "../data/accounts/audit-entry.ts";
import { openDatabase, type Trx } from "../data/database.ts";
import { openDatabaseBeside } from "../gateway/stores.ts";
import { EXIT } from "./exit.ts";
import { type CommandRun, runToExit } from "./process.ts";

export interface KeyWish {
  readonly name: string;
  readonly permissions: readonly string[];
  readonly expiresAt: Date | null;
}

/** `keys create --local`. Answers the exit code. */
export const createKey = (config: Config, wish: KeyWish): Promise<number> =>
  runToExit(config, "No key is made", (given) => runKeyCreation(config, wish, given));

/** Gives the operator's organization another key, also beside a gateway that runs. Answers the exit code. */
export async function runKeyCreation(
  config: Config,
  wish: KeyWish,
  { log, signal, print }: CommandRun,
): Promise<number> {
  await using store = await openDatabaseBeside(config, { log, signal });
  await using database = openDatabase({ connection: store.database, maxConnections: 1 });
  const made = await database.db.transaction().execute((trx) => createFor(trx, wish, Date.now()));
  if (made === undefined) {
    await print("No key is made: there is no organization yet; the first start makes it, and its key.\n");
    return EXIT.failed;
  }
  await print(`${made}\n`);
  return EXIT.done;
}

/** Undefined before the first start. */
async function createFor(trx: Trx, wish: KeyWish, nowMs: number): Promise<string | undefined> {
  const columns = ["organizationId", "spaceId", "accountId"] as const;
  const { organizationId, spaceId, accountId } = await trx
    .selectFrom("cluster")
    .select(columns)
    .executeTakeFirstOrThrow();
  if (organizationId === null || accountId === null) return undefined;
  const { id, token } = await createApiKey(trx, { ...wish, organizationId, spaceId, accountId }, nowMs);
  const entry = { action: "create", entity: "apiKey", id } as const;
  await recordAudit(trx, operatorOf(organizationId), entry, nowMs);
  return token;
}
