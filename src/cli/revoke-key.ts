import type { Config } from "../config/schema.ts";
import { hashOfToken, revokeApiKey } from "../data/accounts/api-keys.ts";
import { operatorOf } from "../data/accounts/audit-entry.ts";
import { openDatabase, type Trx } from "../data/database.ts";
import { openDatabaseForCommand } from "../gateway/stores.ts";
import type { StoresRun } from "./commands/machine.ts";
import { EXIT, type ExitCode } from "./exit.ts";

/**
 * Revokes an API key, given by id, prefix or the key itself, and returns the exit code. Also revokes the last key with all permissions.
 * Running gateways reject the key within five seconds.
 */
export async function revokeKey(
  config: Config,
  named: string,
  { log, signal, print }: StoresRun,
): Promise<ExitCode> {
  await using store = await openDatabaseForCommand(config, { log, signal });
  await using database = openDatabase({ connection: store.database, maxConnections: 1 });
  const { text, code } = await database.db.transaction().execute((trx) => revokeNamed(trx, named));
  await print(`${text}\n`);
  return code;
}

async function revokeNamed(
  trx: Trx,
  named: string,
): Promise<{ readonly text: string; readonly code: ExitCode }> {
  const [key, ...others] = await trx
    .selectFrom("apiKeys")
    .select(["id", "name", "organizationId", "revokedAt"])
    .where((eb) =>
      eb.or([eb("id", "=", named), eb("prefix", "=", named), eb("hash", "=", hashOfToken(named))]),
    )
    .forUpdate()
    .execute();
  if (key === undefined)
    return { text: "No key was revoked: there is no key with this id or prefix.", code: EXIT.failed };
  if (others.length > 0)
    return {
      text: "No key was revoked: several keys start with this prefix. Use the key's id instead.",
      code: EXIT.failed,
    };
  const called = `The key ${key.id} (${key.name}, of ${key.organizationId})`;
  if (key.revokedAt !== null) return { text: `${called} was already revoked.`, code: EXIT.done };
  await revokeApiKey(trx, operatorOf(key.organizationId), key.id, Date.now());
  return { text: `${called} is revoked. All gateways reject it within five seconds.`, code: EXIT.done };
}
