import { sql } from "kysely";
import type { AgentCallback, AgentSecrets, AgentSubscriber } from "../../event/agent-subscriber.ts";
import { parseJson } from "../../event/parse-json.ts";
import { createId } from "../../lib/ids.ts";
import { recordAudit } from "../accounts/audit.ts";
import type { Author } from "../accounts/audit-entry.ts";
import { permissionsOf } from "../accounts/callers.ts";
import { recordChange } from "../changes.ts";
import type { Database, Queryable, Trx } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";
import { recordRemovals } from "../removals.ts";
import type { Row } from "../tables.ts";
import { handlerSecretPlace } from "./handlers.ts";

/** Prefix of the ids of the rows. It differs from that of other subscriptions, so that their backlog does not count as lag. */
export const AGENT_ROW = "agt";

/** Maximum number of subscriptions per caller. */
export const MAX_PER_PRINCIPAL = 100;
/** Time in ms for which messages are also signed with the previous secret after a refresh with a new one. */
const ROTATION_MS = 300_000;

export interface WantedAgentSubscription {
  readonly agentId: string;
  readonly principal: string;
  readonly appId: string;
  /** `<channel uid>:<event type>` */
  readonly eventUid: string;
  readonly agent: AgentSubscriber;
  readonly secret: string;
  readonly expiresAtMs: number;
}

/** The stored subscription. `isNew` is false if it was active already, and only its expiry and its secret were changed. */
export interface SavedAgentSubscription {
  readonly isNew: boolean;
  readonly agent: AgentSubscriber;
}

/**
 * Creates a subscription, or extends it if it is active. A subscription that has expired is replaced by a new one.
 *
 * @returns `undefined` if the caller has `MAX_PER_PRINCIPAL` other subscriptions
 * @throws RefusedAgentError if the caller lost a permission, or the event type was closed, since the request was checked
 */
export function saveAgentSubscription(
  db: Database["db"],
  keyring: Keyring,
  author: Author,
  wanted: WantedAgentSubscription,
  nowMs: number,
): Promise<SavedAgentSubscription | undefined> {
  const { agentId, principal, secret } = wanted;
  return db.transaction().execute(async (trx) => {
    // Refreshes of one caller run one after another, so that the limit holds and a subscription is created once.
    await sql`SELECT pg_advisory_xact_lock(hashtextextended(${`agent ${principal}`}, 0))`.execute(trx);
    const found = await trx
      .selectFrom("subscriptions")
      .selectAll()
      .where("agentId", "=", agentId)
      .forUpdate()
      .executeTakeFirst();
    if (found?.agent && found.expiresAt !== null && found.expiresAt.getTime() > nowMs) {
      const secrets = rotate(openSecrets(keyring, found), secret, nowMs);
      await trx
        .updateTable("subscriptions")
        .set({
          expiresAt: new Date(wanted.expiresAtMs),
          sealedHandlerSecret: sealSecrets(keyring, found.id, secrets),
          updatedAt: new Date(nowMs),
        })
        .where("id", "=", found.id)
        .execute();
      await requireAllowed(trx, found.id, nowMs);
      await recordChange(trx, { kind: "subscription", key: found.id });
      const entry = {
        action: "update",
        entity: "subscription",
        id: found.id,
        fields: ["expiresAt"],
      } as const;
      await recordAudit(trx, author, entry, nowMs);
      return { isNew: false, agent: found.agent };
    }
    if (found) await deleteRow(trx, author, found, nowMs);
    const { count } = await trx
      .selectFrom("subscriptions")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("agentPrincipal", "=", principal)
      .where("expiresAt", ">", new Date(nowMs))
      .executeTakeFirstOrThrow();
    if (count >= MAX_PER_PRINCIPAL) return undefined;
    await insertRow(trx, keyring, author, wanted, nowMs);
    return { isNew: true, agent: wanted.agent };
  });
}

async function insertRow(
  trx: Trx,
  keyring: Keyring,
  author: Author,
  { agentId, principal, appId, eventUid, agent, secret, expiresAtMs }: WantedAgentSubscription,
  nowMs: number,
): Promise<void> {
  const id = createId(AGENT_ROW, nowMs);
  const { organizationId } = author;
  await trx
    .insertInto("subscriptions")
    .values({
      ...{ id, organizationId, appId, eventUid, agentId },
      connectionId: null,
      state: "active",
      startAt: "now",
      startMs: Number(agent.start.after.split("-")[0]),
      handler: null,
      sealedHandlerSecret: sealSecrets(keyring, id, { current: secret }),
      agent: JSON.stringify(agent),
      agentPrincipal: principal,
      expiresAt: new Date(expiresAtMs),
      createdAt: new Date(nowMs),
      updatedAt: new Date(nowMs),
    })
    .execute();
  await requireAllowed(trx, id, nowMs);
  await recordChange(trx, { kind: "subscription", key: id });
  await recordAudit(trx, author, { action: "create", entity: "subscription", id }, nowMs);
}

/** Keeps the secret before a change for a while, because the agent may still verify messages with it. */
function rotate(before: AgentSecrets, secret: string, nowMs: number): AgentSecrets {
  if (before.current === secret) return before;
  return { current: secret, previous: { secret: before.current, untilMs: nowMs + ROTATION_MS } };
}

const sealSecrets = (keyring: Keyring, id: string, secrets: AgentSecrets): string =>
  keyring.seal(JSON.stringify(secrets), handlerSecretPlace(id));

function openSecrets(keyring: Keyring, { id, sealedHandlerSecret }: Row<"subscriptions">): AgentSecrets {
  if (sealedHandlerSecret === null) throw new Error(`the subscription ${id} has no secret`);
  return parseJson(keyring.open(sealedHandlerSecret, handlerSecretPlace(id))) as AgentSecrets;
}

interface DeletedRow {
  readonly id: string;
  readonly organizationId: string;
}

/** Deletes the row of a subscription. Its consumer group is removed later. */
async function deleteRow(
  trx: Trx,
  author: Author,
  { id, organizationId }: DeletedRow,
  nowMs: number,
): Promise<void> {
  await trx.deleteFrom("subscriptions").where("id", "=", id).execute();
  await recordChange(trx, { kind: "subscription", key: id });
  await recordRemovals(trx, [{ kind: "subscription", id, organizationId }], nowMs);
  await recordAudit(trx, author, { action: "delete", entity: "subscription", id }, nowMs);
}

/**
 * Deletes a subscription. Returns false if it does not exist.
 *
 * @param selected its row or agent id, and what else must be true of it
 */
export function deleteAgentSubscription(
  db: Database["db"],
  author: Author,
  selected: {
    readonly id?: string;
    readonly agentId?: string;
    readonly appId?: string;
    readonly expiredAtMs?: number;
  },
  nowMs: number,
): Promise<boolean> {
  const { expiredAtMs, ...named } = selected;
  return db.transaction().execute(async (trx) => {
    let rows = trx
      .selectFrom("subscriptions")
      .select(["id", "organizationId"])
      .where("agent", "is not", null)
      .where((eb) => eb.and({ ...named, organizationId: author.organizationId }));
    if (expiredAtMs !== undefined) rows = rows.where("expiresAt", "<=", new Date(expiredAtMs));
    const found = await rows.forUpdate().executeTakeFirst();
    if (found) await deleteRow(trx, author, found, nowMs);
    return found !== undefined;
  });
}

/** Thrown if a subscription would have to end as soon as it is stored. */
export class RefusedAgentError extends Error {
  override readonly name = "RefusedAgentError";
  readonly reason: "forbidden" | "closed";

  constructor(reason: "forbidden" | "closed") {
    super(`the subscription must not exist: ${reason}`);
    this.reason = reason;
  }
}

/**
 * Checks a stored subscription again. The callback URL may take seconds to answer its challenge, and a change in that time preceded the row,
 * so that no check after a change finds it.
 *
 * @throws RefusedAgentError
 */
async function requireAllowed(trx: Trx, id: string, nowMs: number): Promise<void> {
  const { rows } = await sql<{ readonly isAllowed: boolean; readonly isOpen: boolean }>`
    SELECT ${isAllowed(nowMs)} AS is_allowed, ${isOpen} AS is_open FROM subscriptions AS s WHERE s.id = ${id}`.execute(
    trx,
  );
  if (rows[0]?.isAllowed !== true) throw new RefusedAgentError("forbidden");
  if (!rows[0].isOpen) throw new RefusedAgentError("closed");
}

/** Why a subscription ends: its time is over, its caller lost a permission, or the event type was closed to agents. */
export type AgentEnd = "expired" | "forbidden" | "closed";

export interface EndedAgentSubscription extends DeletedRow {
  readonly reason: AgentEnd;
  readonly callback: AgentCallback;
}

/** Returns subscriptions that must end now. `all` also checks those whose time is not over. */
export async function listEnded(
  db: Queryable,
  keyring: Keyring,
  { nowMs, all }: { readonly nowMs: number; readonly all: boolean },
): Promise<readonly EndedAgentSubscription[]> {
  const isExpired = sql<boolean>`s.expires_at <= ${new Date(nowMs)}`;
  const reason = sql<AgentEnd>`CASE WHEN ${isExpired} THEN 'expired' WHEN ${isAllowed(nowMs)} THEN 'closed' ELSE 'forbidden' END`;
  const condition = all ? sql`${isExpired} OR NOT ${isAllowed(nowMs)} OR NOT ${isOpen}` : isExpired;
  const { rows } = await sql<Row<"subscriptions"> & { readonly reason: AgentEnd }>`
    SELECT s.*, ${reason} AS reason FROM subscriptions AS s
    WHERE s.agent_principal IS NOT NULL AND (${condition}) LIMIT ${ENDED_AT_ONCE}`.execute(db);
  return rows.flatMap((row) => {
    const { id, organizationId, agent, agentId, agentPrincipal } = row;
    if (agent === null || agentId === null || agentPrincipal === null) return [];
    const callback = { ...agent, agentId, principal: agentPrincipal, secrets: openSecrets(keyring, row) };
    return [{ id, organizationId, reason: row.reason, callback }];
  });
}

const ENDED_AT_ONCE = 200;

/** SQL condition: the key or account that made the subscription still has the permissions for it. */
const isAllowed = (nowMs: number) => sql<boolean>`CASE WHEN s.agent->>'keyId' IS NULL THEN EXISTS (
    SELECT FROM memberships JOIN accounts ON accounts.id = memberships.account_id AND accounts.status = 'active'
    WHERE memberships.account_id = s.agent->>'accountId' AND memberships.organization_id = s.organization_id
      AND EXISTS (
        SELECT FROM identities
        WHERE identities.account_id = accounts.id AND identities.organization_id = s.organization_id
      )
      AND ${suffices("memberships")}
  ) ELSE EXISTS (
    SELECT FROM api_keys JOIN accounts ON accounts.id = api_keys.account_id AND accounts.status = 'active'
    WHERE api_keys.id = s.agent->>'keyId' AND api_keys.revoked_at IS NULL
      AND (api_keys.expires_at IS NULL OR api_keys.expires_at > ${new Date(nowMs)})
      AND ${suffices("api_keys")}
  ) END`;

const suffices = (table: Parameters<typeof permissionsOf>[0]) => {
  const held = permissionsOf(table);
  return sql<boolean>`(${held} @> ARRAY['*'] OR ${held} @> ARRAY['apps.read', 'apps.write'])`;
};

/** SQL condition: the definition of the event type exists and is open to agents. */
const isOpen = sql<boolean>`EXISTS (
    SELECT FROM channels AS c, jsonb_array_elements(c.events::jsonb) AS definition
    WHERE c.app_id = s.app_id AND s.event_uid = c.uid || ':' || (definition->>'type')
      AND definition->'agents' = 'true'
  )`;
