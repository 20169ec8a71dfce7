import { idBefore } from "../../../bus/entry-id.ts";
import { readRedisTimeMs } from "../../../bus/groups/groups.ts";
import {
  type Backlog,
  ensureGroups,
  readBacklogs,
  UNKNOWN_BACKLOG,
} from "../../../bus/groups/subscription-groups.ts";
import { countDeadLetters } from "../../../data/subscriptions/dead-letters.ts";
import { deleted } from "../../../http/fields.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import { mapBounded } from "../../../lib/map-bounded.ts";
import { removeUncoveredGroups } from "../../../maintenance/remove-uncovered-groups.ts";
import { appScopeOf, requireApp, subscriptionParams } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import type { Deps } from "../../kit/deps.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { makeHandlerSecret, requireFilter, requireReachable } from "./handler.ts";
import {
  deleteSubscription,
  getSubscription,
  insertSubscription,
  listSubscriptions,
  type Subscription,
} from "./queries.ts";
import {
  lagSchema,
  renderSubscription,
  type StartAt,
  type SubscriptionEntity,
  subscribedSchema,
  subscribeSchema,
  subscriptionSchema,
} from "./schema.ts";

/**
 * Routes of subscriptions. To create one, Redis is read before the row is written, so that an outage rejects the request
 * early. Consumer groups that are missing afterwards are created by a background job.
 */
export const subscriptions: Resource = {
  tag: "Subscriptions",
  params: subscriptionParams,
  routes: (deps) => [
    defineRoute({
      at: "POST /apps/:appId/events/subscribe",
      operation: "subscribe",
      summary: "Subscribe to events of an app",
      description:
        "Creates a new subscription on every call. With a `handler`, Inlet sends the events to it, or only those that match `when`. Without one, readers read them from Redis with the subscription's consumer group.\n\n`eventUid` is `<channel_uid>:<event_type>`, or `<channel_uid>:*` for all events of a channel, or `*` for all events of the app.\n\n`connectionId` is set on the covered channel if it fetches events and has no connection. With `*`, it is set on each such channel that accepts a connection and whose URL is within the allowed origins. The request fails with 400 if no channel then uses the connection.",
      body: subscribeSchema,
      answer: subscribedSchema,
      creates: true,
      missing: "the app, channel, event definition or connection does not exist",
      conflict:
        "`eventUid` is `*` and the app has no channels; more than 1,000 topics would be covered; the channel has another connection; or " +
        ROW_LIMIT_CONFLICT,
      async handle({ caller, params, body }) {
        const { db, redis, channelKinds, keyring, clock } = deps;
        const scope = appScopeOf(caller, params);
        const { eventUid, connectionId = null, startAt } = body;
        const handler = body.handler
          ? { ...body.handler, secret: body.handler.secret ?? makeHandlerSecret() }
          : null;
        await requireApp(db, scope);
        await requireFilter(deps, scope.organizationId, body);
        if (handler) await requireReachable(deps, handler);
        const startMs = startMsOf(startAt, await readRedisTimeMs(redis));
        const wanted = { eventUid, startAt, startMs, connectionId, handler, when: body.when };
        const context = { channelKinds, keyring, nowMs: clock(), requireRoom: deps.requireRoom };
        const subscription = await db
          .transaction()
          .execute((trx) => insertSubscription(trx, caller, scope, wanted, context));
        await tryEnsureGroups(deps, subscription);
        const made = body.handler?.secret === undefined ? handler?.secret : undefined;
        const { connected: connectedChannels } = subscription;
        return { ...(await renderOne(deps, subscription, made)), connectedChannels };
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/subscriptions",
      operation: "listSubscriptions",
      summary: "List the subscriptions of an app",
      query: pageQuerySchema,
      answer: listOf(subscriptionSchema),
      async handle({ caller, params, query }) {
        const scope = appScopeOf(caller, params);
        await requireApp(deps.db, scope);
        const { items, total } = await listSubscriptions(deps.db, scope, query);
        return { items: await renderAll(deps, items), total };
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/subscriptions/:subscriptionId",
      operation: "getSubscription",
      summary: "Get a subscription",
      answer: subscriptionSchema,
      async handle({ caller, params }) {
        const scope = appScopeOf(caller, params);
        return renderOne(deps, await getSubscription(deps.db, scope, params.subscriptionId));
      },
    }),
    defineRoute({
      at: "GET /apps/:appId/subscriptions/:subscriptionId/lag",
      operation: "getSubscriptionLag",
      summary: "Get the lag of a subscription",
      answer: lagSchema,
      async handle({ caller, params }) {
        const scope = appScopeOf(caller, params);
        const subscription = await getSubscription(deps.db, scope, params.subscriptionId);
        const backlogs = await readBacklogs(deps, [placeOf(subscription)]);
        const { lag, lagSeconds, pending } = backlogs.get(subscription.row.id) ?? UNKNOWN_BACKLOG;
        return { lag, lagSeconds, pending };
      },
    }),
    defineRoute({
      at: "DELETE /apps/:appId/subscriptions/:subscriptionId",
      operation: "deleteSubscription",
      summary: "Delete a subscription",
      description: "Also deletes the subscription's consumer groups.",
      answer: deleted,
      async handle({ caller, params }) {
        const id = params.subscriptionId;
        const scope = appScopeOf(caller, params);
        await deps.db
          .transaction()
          .execute((trx) => deleteSubscription(trx, caller, scope, id, deps.clock()));
        await deps.onDeleted();
        return { id };
      },
    }),
  ],
};

export function startMsOf(startAt: StartAt, redisTimeMs: number): number {
  if (startAt === "now") return redisTimeMs;
  return startAt === "earliest" ? 0 : Math.max(0, startAt);
}

/** Updates the subscription's consumer groups in Redis. If Redis is unavailable, a background job updates the groups later. */
export async function tryEnsureGroups(
  deps: Deps,
  { row: { id, startMs, state }, topics }: Subscription,
): Promise<void> {
  const { groups, log } = deps;
  try {
    await ensureGroups(groups, {
      id,
      startId: idBefore(startMs),
      topics,
      isPaused: state === "paused",
    }).finally(() => removeUncoveredGroups(deps, new Map([[id, topics]])));
  } catch (err) {
    log.warn(
      { event: "subscription.groups_late", err, subscription: id },
      "Could not update the consumer groups of a subscription. The group reconciler will update them later.",
    );
  }
}

export async function renderOne(
  deps: Deps,
  subscription: Subscription,
  secret?: string,
): Promise<SubscriptionEntity> {
  const [entity] = await renderAll(deps, [subscription]);
  if (!entity) throw new Error("a subscription was read but not rendered");
  return entity.handler === null
    ? entity
    : { ...entity, handler: { ...entity.handler, secret: secret ?? null } };
}

async function renderAll(
  deps: Deps,
  subscriptions: readonly Subscription[],
): Promise<readonly SubscriptionEntity[]> {
  const ids = subscriptions.map(({ row }) => row.id);
  const [backlogs, readerErrors, letters] = await Promise.all([
    readBacklogs(deps, subscriptions.map(placeOf)).catch((err) => {
      deps.log.warn(
        { event: "subscription.lags_unknown", err },
        "Could not read the lags of subscriptions from Redis. They are returned as null.",
      );
      return new Map<string, Backlog>();
    }),
    mapBounded(ids, ERRORS_AT_ONCE, (id) => deps.groups.findReaderError(id).catch(() => undefined)),
    countDeadLetters(deps.db, ids),
  ]);
  return subscriptions.map(({ row, topics }, index) => {
    const { setAside, ...backlog } = backlogs.get(row.id) ?? UNKNOWN_BACKLOG;
    const deadLetters = setAside === null ? null : setAside + (letters.get(row.id) ?? 0);
    return renderSubscription(row, topics, { ...backlog, deadLetters }, readerErrors[index]);
  });
}

const ERRORS_AT_ONCE = 32;

const placeOf = ({ row, topics }: Subscription) => ({ id: row.id, topics });
