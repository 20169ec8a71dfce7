import type { RedisBus } from "../../../bus/connection/redis.ts";
import { type Groups, readRedisTimeMs } from "../../../bus/groups/groups.ts";
import {
  type Backlog,
  ensureGroups,
  readBacklogs,
  UNKNOWN_BACKLOG,
} from "../../../bus/groups/subscription-groups.ts";
import type { EntryIndex } from "../../../bus/topics/entry-index.ts";
import type { EntityDeps } from "../../../channels/entity.ts";
import type { Queryable } from "../../../data/database.ts";
import type { Keyring } from "../../../data/keyring/keyring.ts";
import { countDeadLettersOf } from "../../../data/subscriptions/dead-letters.ts";
import { deleted } from "../../../http/fields.ts";
import { pageQuerySchema } from "../../../http/page.ts";
import type { Clock } from "../../../lib/clock.ts";
import type { Log } from "../../../log.ts";
import { removeUncoveredGroups } from "../../../maintenance/remove-uncovered-groups.ts";
import { appParams, appScopeOf, requireApp } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { type EnforceRowLimit, ROW_LIMIT_CONFLICT } from "../../kit/row-limit.ts";
import { makeHandlerSecret } from "./handler.ts";
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

export interface SubscriptionsDeps extends Pick<EntityDeps, "channelKinds"> {
  readonly db: Queryable;
  readonly requireRoom: EnforceRowLimit;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly entries: EntryIndex;
  readonly keyring: Keyring;
  readonly clock: Clock;
  readonly log: Log;
  /** Called after a subscription was deleted from PostgreSQL, to remove its consumer groups from Redis. Must not throw. */
  readonly onDeleted: () => Promise<void>;
}

/**
 * Creates subscriptions. Redis is read before the row is written, so that an outage rejects the request early. Consumer
 * groups that are missing afterwards are created by a background job.
 */
export const subscribe: Resource<SubscriptionsDeps> = {
  path: "/apps/:appId/events/subscribe",
  tag: "Subscriptions",
  routes: (deps) => [
    defineRoute(
      {
        method: "post",
        path: "/",
        operation: "subscribe",
        summary: "Subscribe to events of an app",
        description:
          "Creates a new subscription on every call. With a `handler`, Inlet sends the events to it. Without one, readers read them from Redis with the subscription's consumer group.\n\n`eventUid` is `<channel_uid>:<event_type>`, or `<channel_uid>:*` for all events of a channel, or `*` for all events of the app.\n\n`connectionId` is set on the covered channel if it fetches events and has no connection. With `*`, it is set on each such channel that accepts a connection and whose URL is within the allowed origins. The request fails with 400 if no channel then uses the connection.",
        params: appParams,
        body: subscribeSchema,
        answer: subscribedSchema,
        creates: true,
        missing: "the app, channel, event definition or connection does not exist",
        conflict:
          "`eventUid` is `*` and the app has no channels; more than 1,000 topics would be covered; the channel has another connection; or " +
          ROW_LIMIT_CONFLICT,
      },
      async ({ caller, params, body }) => {
        const { db, redis, channelKinds, keyring, clock } = deps;
        const scope = appScopeOf(caller, params);
        const { eventUid, connectionId = null, startAt } = body;
        const handler = body.handler
          ? { ...body.handler, secret: body.handler.secret ?? makeHandlerSecret() }
          : null;
        await requireApp(db, scope);
        const startMs = startMsOf(startAt, await readRedisTimeMs(redis));
        const wanted = { eventUid, startAt, startMs, connectionId, handler };
        const context = { channelKinds, keyring, nowMs: clock(), requireRoom: deps.requireRoom };
        const subscription = await db
          .transaction()
          .execute((trx) => insertSubscription(trx, caller, scope, wanted, context));
        await tryEnsureGroups(deps, subscription);
        const made = body.handler?.secret === undefined ? handler?.secret : undefined;
        const { connected: connectedChannels } = subscription;
        return { ...(await renderOne(deps, subscription, made)), connectedChannels };
      },
    ),
  ],
};

export const params = { ...appParams, subscriptionId: pathId("sub", "subscription") };

export const subscriptions: Resource<SubscriptionsDeps> = {
  path: "/apps/:appId/subscriptions",
  tag: "Subscriptions",
  routes: (deps) => [
    defineRoute(
      {
        method: "get",
        path: "/",
        operation: "listSubscriptions",
        summary: "List the subscriptions of an app",
        params: appParams,
        query: pageQuerySchema,
        answer: listOf(subscriptionSchema),
      },
      async ({ caller, params, query }) => {
        const scope = appScopeOf(caller, params);
        await requireApp(deps.db, scope);
        const { items, total } = await listSubscriptions(deps.db, scope, query);
        return { items: await renderAll(deps, items), total };
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/:subscriptionId",
        operation: "getSubscription",
        summary: "Get a subscription",
        params,
        answer: subscriptionSchema,
      },
      async ({ caller, params }) => {
        const scope = appScopeOf(caller, params);
        return renderOne(deps, await getSubscription(deps.db, scope, params.subscriptionId));
      },
    ),
    defineRoute(
      {
        method: "get",
        path: "/:subscriptionId/lag",
        operation: "getSubscriptionLag",
        summary: "Get the lag of a subscription",
        params,
        answer: lagSchema,
      },
      async ({ caller, params }) => {
        const scope = appScopeOf(caller, params);
        const subscription = await getSubscription(deps.db, scope, params.subscriptionId);
        const backlogs = await readBacklogs(deps, [placeOf(subscription)]);
        const { lag, lagSeconds, pending } = backlogs.get(subscription.row.id) ?? UNKNOWN_BACKLOG;
        return { lag, lagSeconds, pending };
      },
    ),
    defineRoute(
      {
        method: "delete",
        path: "/:subscriptionId",
        operation: "deleteSubscription",
        summary: "Delete a subscription",
        description: "Also deletes the subscription's consumer groups.",
        params,
        answer: deleted,
      },
      async ({ caller, params }) => {
        const id = params.subscriptionId;
        const scope = appScopeOf(caller, params);
        await deps.db
          .transaction()
          .execute((trx) => deleteSubscription(trx, caller, scope, id, deps.clock()));
        await deps.onDeleted();
        return { id };
      },
    ),
  ],
};

export function startMsOf(startAt: StartAt, redisTimeMs: number): number {
  if (startAt === "now") return redisTimeMs;
  return startAt === "earliest" ? 0 : Math.max(0, startAt);
}

/** Updates the subscription's consumer groups in Redis. If Redis is unavailable, a background job updates the groups later. */
export async function tryEnsureGroups(
  deps: SubscriptionsDeps,
  { row: { id, startMs, state }, topics }: Subscription,
): Promise<void> {
  const { groups, log } = deps;
  try {
    await ensureGroups(groups, { id, startMs, topics, isPaused: state === "paused" }).finally(() =>
      removeUncoveredGroups(deps, new Map([[id, topics]])),
    );
  } catch (err) {
    log.warn(
      { event: "subscription.groups_late", err, subscription: id },
      "Could not update the consumer groups of a subscription. The group reconciler will update them later.",
    );
  }
}

export async function renderOne(
  deps: SubscriptionsDeps,
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
  deps: SubscriptionsDeps,
  subscriptions: readonly Subscription[],
): Promise<readonly SubscriptionEntity[]> {
  const ids = subscriptions.map(({ row }) => row.id);
  const [backlogs, letters] = await Promise.all([
    readBacklogs(deps, subscriptions.map(placeOf)).catch((err) => {
      deps.log.warn(
        { event: "subscription.lags_unknown", err },
        "Could not read the lags of subscriptions from Redis. They are returned as null.",
      );
      return new Map<string, Backlog>();
    }),
    countDeadLettersOf(deps.db, ids),
  ]);
  return subscriptions.map(({ row, topics }) => {
    const { setAside, ...backlog } = backlogs.get(row.id) ?? UNKNOWN_BACKLOG;
    const deadLetters = setAside === null ? null : setAside + (letters.get(row.id) ?? 0);
    return renderSubscription(row, topics, { ...backlog, deadLetters });
  });
}

const placeOf = ({ row, topics }: Subscription) => ({ id: row.id, topics });
