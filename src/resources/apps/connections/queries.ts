import { sql } from "kysely";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { recordChange } from "../../../data/changes.ts";
import { resumeReauthorized } from "../../../data/channels/channel-states.ts";
import type { ConnectionRow } from "../../../data/connection-tables.ts";
import { forgetRefusal, forgetTokens } from "../../../data/connections/connection-tokens.ts";
import {
  findConnection,
  openConnectionSecrets,
  sealConnectionSecrets,
} from "../../../data/connections/connections.ts";
import type { Queryable, Trx } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed, Page } from "../../../http/page.ts";
import { conflict, invalidParameters, notFound } from "../../../http/problem.ts";
import { changedFields } from "../../../lib/changed-fields.ts";
import type { Clock } from "../../../lib/clock.ts";
import { createId } from "../../../lib/ids.ts";
import { mergePatch } from "../../../lib/merge-patch.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { parseInput } from "../../kit/resource.ts";
import { findSecretsWanted, grantChange, splitSecrets } from "./changes.ts";
import {
  type Connection,
  type ConnectionInput,
  type ConnectionPatch,
  connectionInput,
  renderConnection,
} from "./schema.ts";

export interface ConnectionStoreDeps {
  readonly db: Queryable;
  readonly keyring: Keyring;
  readonly clock: Clock;
}

/** @throws ApiError 404 where the organization has none of that id */
export async function getConnectionRow(
  db: Queryable,
  { organizationId }: Pick<Caller, "organizationId">,
  id: string,
): Promise<ConnectionRow> {
  const row = await findConnection(db, organizationId, id);
  if (!row) throw notFound("connection");
  return row;
}

export async function listConnections(
  { db }: ConnectionStoreDeps,
  { organizationId }: Caller,
  page: Page,
): Promise<Listed<Connection>> {
  const all = db.selectFrom("connections").where("organizationId", "=", organizationId);
  return mapPage(await listPage(all.selectAll(), page), renderConnection);
}

export async function createConnection(
  { db, keyring, clock }: ConnectionStoreDeps,
  caller: Caller,
  input: ConnectionInput,
): Promise<Connection> {
  const nowMs = clock();
  const id = createId("con", nowMs);
  const { config, secrets } = splitSecrets(input);
  return db.transaction().execute(async (trx) => {
    const row = await trx
      .insertInto("connections")
      .values({
        id,
        organizationId: caller.organizationId,
        name: input.name,
        kind: input.kind,
        config: JSON.stringify(config),
        sealedSecrets: sealConnectionSecrets(keyring, id, secrets),
        allowedOrigins: input.allowedOrigins,
        state: grantChange(input).state,
        createdAt: new Date(nowMs),
        updatedAt: new Date(nowMs),
      })
      .returningAll()
      .executeTakeFirstOrThrow();
    await recordAudit(trx, caller, { action: "create", entity: "connection", id }, nowMs);
    return renderConnection(row);
  });
}

/** @throws ApiError 400, also where the secret must be given again; 404 */
export async function updateConnection(
  { db, keyring, clock }: ConnectionStoreDeps,
  caller: Caller,
  id: string,
  patch: ConnectionPatch,
): Promise<Connection> {
  const nowMs = clock();
  return db.transaction().execute(async (trx) => {
    const before = await lockConnection(trx, caller, id);
    const opened = openConnectionSecrets(keyring, before);
    const settings = { ...before.config, ...opened };
    const { name, kind, allowedOrigins } = before;
    const merged = mergePatch({ name, kind, config: settings, allowedOrigins }, patch);
    const after = parseInput(connectionInput, merged);
    const wanted = findSecretsWanted(before, after, patch);
    if (wanted.length > 0) throw invalidParameters(wanted);

    const { config, secrets } = splitSecrets(after);
    const fields = [
      ...changedFields(
        { name, allowedOrigins, config: before.config },
        { name: after.name, allowedOrigins: after.allowedOrigins, config },
      ),
      ...changedFields({ config: opened }, { config: secrets }),
    ];
    const change = grantChange(after, { state: before.state, settings, allowedOrigins });
    if (change.forgets) await forgetTokens(trx, id);
    else await forgetRefusal(trx, id);
    const row = await trx
      .updateTable("connections")
      .set({
        name: after.name,
        config: JSON.stringify(config),
        sealedSecrets: sealConnectionSecrets(keyring, id, secrets),
        allowedOrigins: after.allowedOrigins,
        state: change.state,
        // Tokens and authorizations under way are of the settings that they were asked for with.
        version: fields.some((field) => field !== "name") ? before.version + 1 : before.version,
        updatedAt: new Date(nowMs),
      })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    await recordChange(trx, { kind: "connection", key: id });
    if (change.state === "ok") await resumeReauthorized(trx, id, nowMs);
    await recordAudit(trx, caller, { action: "update", entity: "connection", id, fields }, nowMs);
    return renderConnection(row);
  });
}

/** Its secrets go with it. @throws ApiError 404, and 409 while a channel, a subscription or its handler uses it */
export async function deleteConnection(
  { db, clock }: ConnectionStoreDeps,
  caller: Caller,
  id: string,
): Promise<void> {
  await db.transaction().execute(async (trx) => {
    await lockConnection(trx, caller, id);
    const users = await findUsers(trx, caller, id);
    if (users.length > 0) throw conflict(`The connection is used by ${users.join(", ")}.`);
    await trx.deleteFrom("connections").where("id", "=", id).execute();
    await recordChange(trx, { kind: "connection", key: id });
    await recordAudit(trx, caller, { action: "delete", entity: "connection", id }, clock());
  });
}

/** The first of those that use it, in words: whoever begins to do so holds its row. */
async function findUsers(trx: Trx, { organizationId }: Caller, id: string): Promise<readonly string[]> {
  const channels = await trx
    .selectFrom("channels")
    .select(["appId", "uid"])
    .where("connectionId", "=", id)
    .orderBy("number")
    .limit(MOST_USERS)
    .execute();
  const subscriptions = await trx
    .selectFrom("subscriptions")
    .select(["id", "appId", "connectionId"])
    .where("organizationId", "=", organizationId)
    .where((eb) => eb.or([eb("connectionId", "=", id), eb(sql<string>`handler->>'connectionId'`, "=", id)]))
    .orderBy("id")
    .limit(MOST_USERS)
    .execute();
  const users = [
    ...channels.map(({ appId, uid }) => `the channel ${uid} of the app ${appId}`),
    ...subscriptions.map(
      ({ id: subscription, appId, connectionId }) =>
        `${connectionId === id ? "the" : "the handler of the"} subscription ${subscription} of the app ${appId}`,
    ),
  ];
  return users.length > MOST_USERS ? [...users.slice(0, MOST_USERS), "others"] : users;
}

const MOST_USERS = 10;

async function lockConnection(trx: Trx, { organizationId }: Caller, id: string): Promise<ConnectionRow> {
  const row = await trx
    .selectFrom("connections")
    .selectAll()
    .where("id", "=", id)
    .where("organizationId", "=", organizationId)
    .forUpdate()
    .executeTakeFirst();
  if (!row) throw notFound("connection");
  return row;
}
