import { sql } from "kysely";
import type { AgentCallback } from "../../event/agent-subscriber.ts";
import type { HandlerAttempt, HandlerSettings } from "../../event/handler.ts";
import { parseJson } from "../../event/parse-json.ts";
import { inPages } from "../../lib/pages.ts";
import { recordAudit } from "../accounts/audit.ts";
import { operatorOf } from "../accounts/audit-entry.ts";
import { recordChange } from "../changes.ts";
import type { Database, Queryable } from "../database.ts";
import type { Keyring } from "../keyring/keyring.ts";

export interface HandledSubscription {
  readonly id: string;
  readonly organizationId: string;
  readonly appId: string;
  readonly state: "active" | "paused";
  readonly handler: HandlerSettings;
  /** Signing secret of the handler. Empty for an agent, whose secrets are in `agent`. */
  readonly secret: string;
  /** Set if the subscription belongs to an agent. Then `handler` describes the agent's callback. */
  readonly agent: AgentCallback | undefined;
  /**
   * Whether the subscription receives system events. Its handler gets no events about the subscription itself, which could cause an
   * endless loop.
   */
  readonly isOfSystem: boolean;
}

const PAGE = 200;

/** Encryption context (AAD) that binds an encrypted handler secret to its subscription. */
export const handlerSecretPlace = (subscriptionId: string): string =>
  `subscriptions/${subscriptionId}/handler`;

const handled = (db: Queryable) =>
  db
    .selectFrom("subscriptions")
    .select(["id", "organizationId", "appId", "state", "handler", "sealedHandlerSecret"])
    .select(["agent", "agentId", "agentPrincipal"])
    .select(
      sql<boolean>`EXISTS (SELECT FROM apps AS a WHERE a.id = subscriptions.app_id AND a.is_system)`.as(
        "isOfSystem",
      ),
    )
    .where((eb) => eb.or([eb("handler", "is not", null), eb("agent", "is not", null)]));

export async function* listHandled(db: Queryable, keyring: Keyring): AsyncGenerator<HandledSubscription> {
  const pages = inPages("id", "", PAGE, (after, limit) =>
    handled(db).where("id", ">", after).orderBy("id").limit(limit).execute(),
  );
  for await (const page of pages) for (const row of page) yield readRow(row, keyring);
}

/** Finds a subscription with its handler. Returns `undefined` if the subscription was deleted or has no handler. */
export async function findHandled(
  db: Queryable,
  keyring: Keyring,
  id: string,
): Promise<HandledSubscription | undefined> {
  const row = await handled(db).where("id", "=", id).executeTakeFirst();
  return row && readRow(row, keyring);
}

function readRow(
  row: Awaited<ReturnType<ReturnType<typeof handled>["executeTakeFirstOrThrow"]>>,
  keyring: Keyring,
): HandledSubscription {
  const { handler, sealedHandlerSecret, agent, agentId, agentPrincipal, ...others } = row;
  if (sealedHandlerSecret === null) throw new Error(`the handler of ${row.id} has no secret`);
  const secret = keyring.open(sealedHandlerSecret, handlerSecretPlace(row.id));
  if (agent === null || agentId === null || agentPrincipal === null)
    return { ...others, handler: handler as HandlerSettings, secret, agent: undefined };
  const secrets = parseJson(secret) as AgentCallback["secrets"];
  return {
    ...others,
    handler: { ...AGENT_HANDLER, url: agent.url, when: agent.arguments.filter as HandlerSettings["when"] },
    secret: "",
    agent: { ...agent, agentId, principal: agentPrincipal, secrets },
  };
}

/** An agent resumes from the cursor of the last event that it has received, so its events must be in order. */
const AGENT_HANDLER = { connectionId: null, timeoutMs: 10_000, concurrency: 1, ordered: true } as const;

export async function setHandlerFailing(db: Queryable, id: string, isFailing: boolean): Promise<void> {
  await db
    .updateTable("subscriptions")
    .set({ handlerFailing: isFailing })
    .where("id", "=", id)
    .where("handlerFailing", "!=", isFailing)
    .execute();
}

export async function setHandlerError(
  db: Queryable,
  id: string,
  { at, status, code }: HandlerAttempt,
): Promise<void> {
  await db
    .updateTable("subscriptions")
    .set({ handlerError: JSON.stringify({ at, status, code }) })
    .where("id", "=", id)
    .execute();
}

/** Pauses a subscription, because its handler responded 410 Gone. Returns false if the subscription is already paused or deleted. */
export async function pauseGone(
  db: Database["db"],
  { id, organizationId }: Pick<HandledSubscription, "id" | "organizationId">,
  nowMs: number,
): Promise<boolean> {
  return db.transaction().execute(async (trx) => {
    const { numUpdatedRows } = await trx
      .updateTable("subscriptions")
      .set({ state: "paused", updatedAt: new Date(nowMs) })
      .where("id", "=", id)
      .where("state", "=", "active")
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
    await recordChange(trx, { kind: "subscription", key: id });
    const entry = { action: "pause", entity: "subscription", id } as const;
    await recordAudit(trx, operatorOf(organizationId), entry, nowMs);
    return true;
  });
}
