import type { Config } from "../config.ts";
import { hashOfToken, revokeApiKey } from "../data/accounts/api-keys.ts";
import { operatorOf } from "../data/accounts/audit-entry.ts";
import { openDatabase, type Trx } from "../data/database.ts";
import { openDatabaseForCommand } from "../gateway/stores.ts";
import { EXIT } from "./exit.ts";
import { type CommandRun, runToExit } from "./process.ts";

/** `--revoke-key`. Answers the exit code. */
export const revoke = (config: Config, named: string): Promise<number> =>
  runToExit(config, "The key is not revoked", (given) => runRevocation(config, named, given));

/**
 * Revokes any key, the last one that may do all included: by its id, the beginning that is shown, or itself. Gateways that run
 * have it in force within five seconds. Answers the exit code.
 */
export async function runRevocation(
  config: Config,
  named: string,
  { log, signal, print }: CommandRun,
): Promise<number> {
  await using store = await openDatabaseForCommand(config, { log, signal });
  await using database = openDatabase({ connection: store.database, maxConnections: 1 });
  const { text, code } = await database.db.transaction().execute((trx) => revokeNamed(trx, named));
  await print(`${text}\n`);
  return code;
}

async function revokeNamed(
  trx: Trx,
  named: string,
): Promise<{ readonly text: string; readonly code: number }> {
  const [key, ...others] = await trx
    .selectFrom("apiKeys")
    .select(["id", "name", "organizationId", "revokedAt"])
    .where((eb) =>
      eb.or([eb("id", "=", named), eb("prefix", "=", named), eb("hash", "=", hashOfToken(named))]),
    )
    .forUpdate()
    .execute();
  if (key === undefined)
    return { text: "Nothing is revoked: no key has that id or that beginning.", code: EXIT.failed };
  if (others.length > 0)
    return { text: "Nothing is revoked: several keys begin so; name one by its id.", code: EXIT.failed };
  const called = `The key ${key.id} (${key.name}, of ${key.organizationId})`;
  if (key.revokedAt !== null) return { text: `${called} was revoked before.`, code: EXIT.done };
  await revokeApiKey(trx, operatorOf(key.organizationId), key.id, Date.now());
  return { text: `${called} is revoked: in force everywhere within five seconds.`, code: EXIT.done };
}
