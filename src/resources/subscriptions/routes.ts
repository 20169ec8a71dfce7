import { Hono } from "hono";
import type { ListEntryIds } from "../../bus/entry-ids.ts";
import { type Groups, readRedisTimeMs } from "../../bus/groups.ts";
import type { RedisBus } from "../../bus/redis.ts";
import { placeSubscription, readLags, removeSubscription } from "../../bus/subscription-groups.ts";
import { hasApp } from "../../data/app-lookup.ts";
import type { Queryable } from "../../data/database.ts";
import type { ApiEnv } from "../../http/context.ts";
import { answerList, pageQuerySchema } from "../../http/page.ts";
import { notFound } from "../../http/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../log.ts";
import { parseBody, parseQuery, pathParam, type Resource } from "../resource.ts";
import {
  type AppScope,
  deleteSubscription,
  findSubscription,
  insertSubscription,
  listSubscriptions,
  type Subscription,
} from "./queries.ts";
import { answerOf, type StartAt, type SubscriptionAnswer, subscribeSchema } from "./schema.ts";

export interface SubscriptionsDeps {
  readonly db: Queryable;
  readonly redis: RedisBus;
  readonly groups: Groups;
  readonly listEntryIds: ListEntryIds;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Subscribing. Redis is asked for its time first, so that nothing is written while it is away. Once the row stands the
 * answer is a success: a group that cannot be made at that moment is made later, at the same place.
 */
export const subscribeResource: Resource<SubscriptionsDeps> = {
  path: "/apps/:appId/events/subscribe",
  create(deps) {
    const { db, redis, groups, clock, log } = deps;
    return new Hono<ApiEnv>().post("/", async (c) => {
      const scope = { organizationId: c.get("caller").organizationId, appId: pathParam(c, "appId") };
      const { eventUid, connectionId, startAt } = await parseBody(c, subscribeSchema);
      if (!(await hasApp(db, scope.organizationId, scope.appId))) throw notFound("app");
      if (typeof connectionId === "string") throw notFound("connection");
      const startMs = startMsOf(startAt, await readRedisTimeMs(redis));
      const subscription = await db
        .transaction()
        .execute((trx) => insertSubscription(trx, scope, { eventUid, startAt, startMs }, clock()));
      const { id } = subscription.row;
      try {
        await placeSubscription(groups, { id, startMs, topics: subscription.topics });
      } catch (error) {
        log.warn({ err: error, subscription: id }, "the groups of a new subscription are made later");
      }
      const [answer] = await answersOf(deps, [subscription]);
      return c.json(answer);
    });
  },
};

export const subscriptionsResource: Resource<SubscriptionsDeps> = {
  path: "/apps/:appId/subscriptions",
  create(deps) {
    const { db, redis, groups, clock, log } = deps;

    async function find(scope: AppScope, id: string): Promise<Subscription> {
      const subscription = await findSubscription(db, scope, id);
      if (!subscription) throw notFound("subscription");
      return subscription;
    }

    return new Hono<ApiEnv>()
      .get("/", async (c) => {
        const scope = { organizationId: c.get("caller").organizationId, appId: pathParam(c, "appId") };
        const page = parseQuery(c, pageQuerySchema);
        if (!(await hasApp(db, scope.organizationId, scope.appId))) throw notFound("app");
        const { items, total } = await listSubscriptions(db, scope, page);
        return answerList(c, { items: await answersOf(deps, items), total });
      })
      .get("/:id", async (c) => {
        const scope = { organizationId: c.get("caller").organizationId, appId: pathParam(c, "appId") };
        const [answer] = await answersOf(deps, [await find(scope, pathParam(c, "id"))]);
        return c.json(answer);
      })
      .delete("/:id", async (c) => {
        const scope = { organizationId: c.get("caller").organizationId, appId: pathParam(c, "appId") };
        const { row, topics } = await find(scope, pathParam(c, "id"));
        const { id } = row;
        const deleted = await db.transaction().execute((trx) => deleteSubscription(trx, scope, id, clock()));
        if (!deleted) throw notFound("subscription");
        // The noted removal does the same, and does it later where Redis is away: here it is done before the answer.
        await removeSubscription({ redis, groups }, id, topics).catch((error: unknown) => {
          log.warn(
            { err: error, subscription: id },
            "the groups of a deleted subscription are removed later",
          );
        });
        return c.json({ id });
      });
  },
};

function startMsOf(startAt: StartAt, redisTimeMs: number): number {
  if (startAt === "now") return redisTimeMs;
  return startAt === "earliest" ? 0 : Math.max(0, startAt);
}

async function answersOf(
  deps: SubscriptionsDeps,
  subscriptions: readonly Subscription[],
): Promise<readonly SubscriptionAnswer[]> {
  const lags = await readLags(
    deps,
    subscriptions.map(({ row, topics }) => ({ id: row.id, topics })),
  ).catch((error: unknown) => {
    deps.log.warn({ err: error }, "lags are not known");
    return new Map<string, null>();
  });
  return subscriptions.map(({ row, topics }) => answerOf(row, topics, lags.get(row.id) ?? null));
}
