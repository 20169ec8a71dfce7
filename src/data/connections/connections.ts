import { sql } from "kysely";
import { formatTimestamp } from "../../lib/clock.ts";
import { recordChange } from "../changes.ts";
import { resumeReauthorized } from "../channels/channel-states.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import type { ConnectionRow, ConnectionState } from "../tables.ts";

type Settings = Readonly<Record<string, unknown>>;

/** Encrypts the secret settings as one text, which can be decrypted only for this connection. */
export const sealConnectionSecrets = (keyring: Keyring, connectionId: string, secrets: Settings): string =>
  keyring.seal(JSON.stringify(secrets), connectionSecretsPlace(connectionId));

/** Decrypts the secret settings. @throws Error if they were sealed for another connection or key */
export const openConnectionSecrets = (
  keyring: Keyring,
  { id, sealedSecrets }: Pick<ConnectionRow, "id" | "sealedSecrets">,
): Settings => JSON.parse(keyring.open(sealedSecrets, connectionSecretsPlace(id)));

/** Returns the context to which a connection's encrypted settings are bound. */
export const connectionSecretsPlace = (connectionId: string): string => `connections/${connectionId}/secrets`;

/** Finds a connection of the organization by id. */
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

/** Tells the operator why a connection does not work. */
export interface ConnectionError {
  readonly code: string;
  readonly message: string;
}

/**
 * Sets the state of a connection. When the state becomes `ok`, resumes channels that stopped because the connection's grant was rejected.
 */
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
  if (state === "ok") await resumeReauthorized(trx, id, nowMs);
}

/** Records that a connection is used now. Writes at most once a minute. */
export async function noteConnectionUse(db: Queryable, id: string): Promise<void> {
  await sql`
    UPDATE connections SET last_used_at = clock_timestamp()
    WHERE id = ${id} AND (last_used_at IS NULL OR last_used_at < clock_timestamp() - interval '1 minute')`.execute(
    db,
  );
}
