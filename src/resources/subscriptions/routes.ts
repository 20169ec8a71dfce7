import { Hono } from "hono";
import type { EntryIndex } from "../../bus/entry-index.ts";
import { type Groups, readRedisTimeMs } from "../../bus/groups.ts";
import type { RedisBus } from "../../bus/redis.ts";
import { placeSubscription, readLags } from "../../bus/subscription-groups.ts";
import type { Queryable } from "../../data/database.ts";
import type { ApiEnv } from "../../http/context.ts";
import { answerList, pageQuerySchema } from "../../http/page.ts";
import { notFound } from "../../http/problem.ts";
import type { Clock } from "../../lib/clock.ts";
import type { Log } from "../../log.ts";
import { type AppScope, appScopeOf, requireApp } from "../app-scope.ts";
import { type PlainResource, parseBody, parseQuery, pathParam } from "../plain.ts";
import {
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
  readonly entries: EntryIndex;
  readonly clock: Clock;
  readonly log: Log;
  /** Told after a deletion is committed: the time to clear away what it leaves on the bus. Must not throw. */
  readonly onDeleted: () => Promise<void>;
}

/**
 * Subscribing. Redis is asked for its time first, so that nothing is written while it is away. Once the row stands the
 * answer is a success: a group that cannot be made at that moment is made later, at the same place.
 */
export const subscribe: PlainResource<SubscriptionsDeps> = {
  path: "/apps/:appId/events/subscribe",
  create(deps) {
    const { db, redis, groups, clock, log } = deps;
    return new Hono<ApiEnv>().post("/", async (c) => {
      const scope = appScopeOf(c);
      const { eventUid, connectionId, startAt } = await parseBody(c, subscribeSchema);
      await requireApp(db, scope);
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

export const subscriptions: PlainResource<SubscriptionsDeps> = {
  path: "/apps/:appId/subscriptions",
  create(deps) {
    const { db, clock } = deps;

    async function find(scope: AppScope, id: string): Promise<Subscription> {
      const subscription = await findSubscription(db, scope, id);
      if (!subscription) throw notFound("subscription");
      return subscription;
    }

    return new Hono<ApiEnv>()
      .get("/", async (c) => {
        const scope = appScopeOf(c);
        const page = parseQuery(c, pageQuerySchema);
        await requireApp(db, scope);
        const { items, total } = await listSubscriptions(db, scope, page);
        return answerList(c, { items: await answersOf(deps, items), total });
      })
      .get("/:id", async (c) => {
        const scope = appScopeOf(c);
        const [answer] = await answersOf(deps, [await find(scope, pathParam(c, "id"))]);
        return c.json(answer);
      })
      .delete("/:id", async (c) => {
        const scope = appScopeOf(c);
        const { id } = (await find(scope, pathParam(c, "id"))).row;
        const deleted = await db.transaction().execute((trx) => deleteSubscription(trx, scope, id, clock()));
        if (!deleted) throw notFound("subscription");
        await deps.onDeleted();
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
