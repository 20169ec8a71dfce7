import { z } from "zod";
import type { Queryable } from "../../data/database.ts";
import { AGENT_ROW, deleteAgentSubscription } from "../../data/subscriptions/agent-subscriptions.ts";
import { countDeadLetters } from "../../data/subscriptions/dead-letters.ts";
import type { Row } from "../../data/tables.ts";
import { jsonSchemaDocument } from "../../event/definition.ts";
import { describeFailure } from "../../event/handler-failure.ts";
import { notFound } from "../../http/errors.ts";
import { deleted, id, type Shown, timestamp } from "../../http/fields.ts";
import { pageQuerySchema } from "../../http/page.ts";
import { type AppScope, appParams, appScopeOf, requireApp } from "../apps/app-scope.ts";
import { listOf } from "../kit/answer.ts";
import { listPage } from "../kit/list-page.ts";
import { pathId } from "../kit/params.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";

const agentSubscriptionSchema = z
  .object({
    id: id(AGENT_ROW),
    agentId: z.string().meta({
      description: "Id that the agent knows, as in the header `X-MCP-Subscription-Id`.",
      example: "agent_7Xk2mQ",
    }),
    appId: id("app"),
    name: z.string().meta({ description: "Event type, as in `events/list`.", example: "acme.github.push" }),
    callbackOrigin: z.string().meta({
      description: "Origin of the callback URL. The rest of the URL may contain a secret.",
      example: "https://agent.example",
    }),
    filter: jsonSchemaDocument
      .nullable()
      .meta({ description: "JSON Schema of the events that the agent gets. Null if it gets all events." }),
    keyId: z
      .string()
      .nullable()
      .meta({ description: "API key that made the subscription. Null if an account made it without a key." }),
    accountId: z.string().meta({ description: "Account that is responsible for the subscription." }),
    state: z
      .enum(["active", "failing"])
      .meta({ description: "`failing`: the callback URL rejects events. They are sent again." }),
    lastError: z
      .object({ code: z.string(), message: z.string(), at: timestamp })
      .nullable()
      .meta({ description: "The last failed attempt to send an event. It may have succeeded since." }),
    deadLetters: z.int().meta({ description: "Number of events that were given up." }),
    expiresAt: timestamp.meta({
      description: "The subscription ends at this time unless the agent refreshes it.",
    }),
    createdAt: timestamp,
    updatedAt: timestamp,
  })
  .meta({ id: "AgentSubscription", description: "An agent's subscription to an event type, by webhook." });
export type AgentSubscriptionEntity = Shown<z.output<typeof agentSubscriptionSchema>>;

/** Routes of the subscriptions that agents make with `events/subscribe`. */
export const agentSubscriptions: Resource = {
  tag: "Agent subscriptions",
  params: { ...appParams, agentSubscriptionId: pathId(AGENT_ROW, "agent subscription") },
  routes: ({ db, clock, onDeleted }) => [
    defineRoute({
      at: "GET /apps/:appId/agent-subscriptions",
      operation: "listAgentSubscriptions",
      summary: "List the subscriptions of agents to an app",
      description:
        "Lists the active subscriptions that agents have made with `events/subscribe` of the MCP server. Agents that use `events/poll` or `events/stream` have none.",
      query: pageQuerySchema,
      answer: listOf(agentSubscriptionSchema),
      async handle({ caller, params, query }) {
        const scope = appScopeOf(caller, params);
        await requireApp(db, scope);
        const { items, total } = await listPage(ofApp(db, scope).selectAll(), query);
        return { items: await renderAll(db, items), total };
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/agent-subscriptions/:agentSubscriptionId",
      operation: "getAgentSubscription",
      summary: "Get a subscription of an agent",
      answer: agentSubscriptionSchema,
      async handle({ caller, params }) {
        const rows = ofApp(db, appScopeOf(caller, params)).selectAll();
        const [found] = await renderAll(
          db,
          await rows.where("id", "=", params.agentSubscriptionId).execute(),
        );
        if (!found) throw notFound("agent subscription");
        return found;
      },
    }),
    defineRoute({
      at: "DELETE /apps/:appId/agent-subscriptions/:agentSubscriptionId",
      operation: "deleteAgentSubscription",
      summary: "End a subscription of an agent",
      description:
        "The agent is not told, and may subscribe again. To prevent that, revoke its key, or close the event type to agents.",
      answer: deleted,
      async handle({ caller, params }) {
        const { appId, agentSubscriptionId } = params;
        const selected = { appId, id: agentSubscriptionId };
        if (!(await deleteAgentSubscription(db, caller, selected, clock())))
          throw notFound("agent subscription");
        await onDeleted();
        return { id: agentSubscriptionId };
      },
    }),
  ],
};

const ofApp = (db: Queryable, scope: AppScope) =>
  db
    .selectFrom("subscriptions")
    .where((eb) => eb.and({ ...scope }))
    .where("agent", "is not", null);

async function renderAll(
  db: Queryable,
  rows: readonly Row<"subscriptions">[],
): Promise<readonly AgentSubscriptionEntity[]> {
  const letters = await countDeadLetters(
    db,
    rows.map((row) => row.id),
  );
  return rows.flatMap((row) => {
    const { agent, agentId, expiresAt, handlerError } = row;
    if (agent === null || agentId === null || expiresAt === null) return [];
    return [
      {
        ...{ id: row.id, agentId, appId: row.appId, name: agent.name },
        callbackOrigin: new URL(agent.url).origin,
        filter: (agent.arguments.filter ?? null) as AgentSubscriptionEntity["filter"],
        ...{ keyId: agent.keyId, accountId: agent.accountId },
        state: row.handlerFailing ? ("failing" as const) : ("active" as const),
        lastError: handlerError && {
          code: handlerError.code,
          at: handlerError.at,
          message: describeFailure(handlerError),
        },
        deadLetters: letters.get(row.id) ?? 0,
        expiresAt: expiresAt.toISOString(),
        createdAt: row.createdAt.toISOString(),
        updatedAt: row.updatedAt.toISOString(),
      },
    ];
  });
}
