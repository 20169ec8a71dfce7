import { sql } from "kysely";
import { parseJson } from "../../event/parse-json.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { recordChange } from "../changes.ts";
import { resumeReauthorized } from "../channels/channel-states.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { retryRegistrations } from "../registrations/registrations.ts";
import type { ConnectionRow } from "../tables.ts";
import type { ConnectionState } from "./connection-tables.ts";

type Secrets = Readonly<Record<string, unknown>>;

/** Encrypts the secret config fields of a connection. The result can be decrypted only for the same connection. */
export const sealConnectionSecrets = (keyring: Keyring, connectionId: string, secrets: Secrets): string =>
  keyring.seal(JSON.stringify(secrets), connectionSecretsPlace(connectionId));

/**
 * Decrypts the secret config fields of a connection.
 *
 * @throws Error if they were encrypted for another connection or with another key
 */
export const openConnectionSecrets = (
  keyring: Keyring,
  { id, sealedSecrets }: Pick<ConnectionRow, "id" | "sealedSecrets">,
): Secrets => parseJson(keyring.open(sealedSecrets, connectionSecretsPlace(id))) as Secrets;

/** Encryption context (AAD) that binds encrypted config fields to their connection. */
export const connectionSecretsPlace = (connectionId: string): string => `connections/${connectionId}/secrets`;

export function findConnection(
  db: Queryable,
  organizationId: string,
  id: string,
): Promise<ConnectionRow | undefined> {
  return db
    .selectFrom("connections")
    .selectAll()
    .where((eb) => eb.and({ id, organizationId }))
    .executeTakeFirst();
}

export interface ConnectionError {
  readonly code: string;
  readonly message: string;
}

/** Sets the state of a connection. The state `ok` also resumes channels that stopped because the OAuth grant was rejected. */
export async function writeConnectionState(
  trx: Trx,
  id: string,
  { state, error }: { readonly state: ConnectionState; readonly error?: ConnectionError },
  nowMs: number,
): Promise<void> {
  const lastError = error === undefined ? null : JSON.stringify({ ...error, at: formatTimestamp(nowMs) });
  const changed = await trx
    .updateTable("connections")
    .set({ state, lastError, updatedAt: new Date(nowMs) })
    .where("id", "=", id)
    .where("state", "!=", state)
    .returning("id")
    .executeTakeFirst();
  if (changed === undefined) return;
  await recordChange(trx, { kind: "connection", key: id });
  if (state !== "ok") return;
  await resumeReauthorized(trx, id, nowMs);
  await retryRegistrations(trx, id, nowMs);
}

/** Records when a connection was last used. Writes to the database at most once a minute. */
export async function noteConnectionUse(db: Queryable, id: string): Promise<void> {
  await sql`
    UPDATE connections SET last_used_at = clock_timestamp()
    WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`.execute(
    db,
  );
}
