import { sql } from "kysely";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { recordChange } from "../../../data/changes.ts";
import { resumeReauthorized } from "../../../data/channels/channel-states.ts";
import { clearRejection, forgetTokens } from "../../../data/connections/connection-tokens.ts";
import { openConnectionSecrets, sealConnectionSecrets } from "../../../data/connections/connections.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import { retryRegistrations } from "../../../data/registrations/registrations.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, invalidParameters } from "../../../http/errors.ts";
import type { Clock } from "../../../lib/clock.ts";
import { formatPath } from "../../../lib/findings.ts";
import { changedFields } from "../../../lib/json/changed-fields.ts";
import { mergePatch } from "../../../lib/json/merge-patch.ts";
import { findPadded } from "../../../lib/secrets/padded.ts";
import { CONNECTIONS, getRow } from "../../kit/references.ts";
import { parseInput } from "../../kit/resource.ts";
import { computeGrantChange, findMissingSecrets, hasReplacedOrigins, splitSecrets } from "./changes.ts";
import { type Connection, type ConnectionPatch, connection, connectionInput } from "./schema.ts";

export interface ConnectionStoreDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

/** Updates a connection. @throws ApiError 404 if it does not exist; 400 if a setting is invalid or a secret must be sent again */
export async function updateConnection(
  { db, keyring, clock }: ConnectionStoreDeps,
  caller: Caller,
  id: string,
  patch: ConnectionPatch,
): Promise<Connection> {
  const nowMs = clock();
  return db.transaction().execute(async (trx) => {
    const before = await getRow(trx, caller, CONNECTIONS, id, "update");
    const opened = openConnectionSecrets(keyring, before);
    const configBefore = { ...before.config, ...opened };
    const { name, kind, allowedOrigins } = before;
    const kept = hasReplacedOrigins(before, patch) ? {} : { allowedOrigins };
    const merged = mergePatch({ name, kind, config: configBefore, ...kept }, patch);
    const after = parseInput(connectionInput, merged);
    const wanted = findMissingSecrets(before, after, patch);
    if (wanted.length > 0) throw invalidParameters(wanted);

    const { config, secrets } = splitSecrets(after);
    requireUnpadded(secrets, opened);
    const fields = [
      ...changedFields(
        { name, allowedOrigins, config: before.config },
        { name: after.name, allowedOrigins: after.allowedOrigins, config },
      ),
      ...changedFields({ config: opened }, { config: secrets }),
    ];
    const change = computeGrantChange(after, { state: before.state, config: configBefore, allowedOrigins });
    if (change.discardsTokens) await forgetTokens(trx, id);
    else await clearRejection(trx, id);
    const row = await trx
      .updateTable("connections")
      .set({
        name: after.name,
        config: JSON.stringify(config),
        sealedSecrets: sealConnectionSecrets(keyring, id, secrets),
        allowedOrigins: after.allowedOrigins,
        state: change.state,
        ...((change.discardsTokens || change.state !== before.state) && { lastError: null }),
        // Increments the version if the settings change, so that token requests in flight cannot store tokens for the old settings.
        version: fields.some((field) => field !== "name") ? before.version + 1 : before.version,
        updatedAt: new Date(nowMs),
      })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    await recordChange(trx, { kind: "connection", key: id });
    await retryRegistrations(trx, id, nowMs);
    if (change.state === "ok") await resumeReauthorized(trx, id, nowMs);
    await recordAudit(trx, caller, { action: "update", entity: "connection", id, fields }, nowMs);
    return connection.render(row);
  });
}

/** @throws ApiError 400 if a secret that is not stored yet has surrounding white space */
export function requireUnpadded(secrets: object, stored: object = {}): void {
  const padded = findPadded({ config: secrets }, stored);
  if (padded.length > 0)
    throw invalidParameters(padded.map(({ path, message }) => ({ path: formatPath(path), message })));
}

/** Checks that the connection is unused. @throws ApiError 409 if a channel, a subscription or its handler uses it */
export async function requireUnused(trx: Trx, caller: Caller, id: string): Promise<void> {
  const users = await findUsers(trx, caller, id);
  if (users.length > 0) throw conflict(`The connection is used by ${users.join(", ")}.`);
}

const MAX_NAMED_USERS = 10;

/**
 * Lists up to `MAX_NAMED_USERS` channels, registrations and subscriptions that use the connection. The caller's lock on the
 * connection's row prevents further ones from being added.
 */
async function findUsers(trx: Trx, { organizationId }: Caller, id: string): Promise<readonly string[]> {
  const channels = await trx
    .selectFrom("channels")
    .select(["appId", "uid"])
    .where("connectionId", "=", id)
    .orderBy("number")
    .limit(MAX_NAMED_USERS)
    .execute();
  const subscriptions = await trx
    .selectFrom("subscriptions")
    .select(["id", "appId", "connectionId"])
    .where("organizationId", "=", organizationId)
    .where((eb) => eb.or([eb("connectionId", "=", id), eb(sql<string>`handler->>'connectionId'`, "=", id)]))
    .orderBy("id")
    .limit(MAX_NAMED_USERS)
    .execute();
  const registrations = await trx
    .selectFrom("registrations")
    .select(["appId", "channelUid"])
    .where("connectionId", "=", id)
    .orderBy("id")
    .limit(MAX_NAMED_USERS)
    .execute();
  const users = [
    ...channels.map(({ appId, uid }) => `the channel ${uid} of the app ${appId}`),
    ...registrations.map(
      ({ appId, channelUid }) => `the registration of the channel ${channelUid} of the app ${appId}`,
    ),
    ...subscriptions.map(
      ({ id: subscription, appId, connectionId }) =>
        `${connectionId === id ? "the" : "the handler of the"} subscription ${subscription} of the app ${appId}`,
    ),
  ];
  return users.length > MAX_NAMED_USERS ? [...users.slice(0, MAX_NAMED_USERS), "others"] : users;
}
