import { z } from "zod";
import { readRedisTimeMs } from "../../../bus/groups/groups.ts";
import { ensureGroups, rewindSubscription } from "../../../bus/groups/subscription-groups.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { type AppScope, appScopeOf } from "../../apps/app-scope.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { type Subscription, updateSubscription } from "./queries.ts";
import { params, renderOne, type SubscriptionsDeps, startMsOf } from "./routes.ts";
import { formatStartAt, rewindSchema, rewoundSchema, subscriptionSchema } from "./schema.ts";

const nothing = z.strictObject({});

/** What is done to a subscription once it stands. */
export const subscriptionLife: Resource<SubscriptionsDeps> = {
  path: "/apps/:appId/subscriptions",
  tag: "Subscriptions",
  routes: (deps) => {
    const { db, groups, redis, clock, log } = deps;

    async function change(
      caller: Caller,
      scope: AppScope,
      id: string,
      next: Parameters<typeof updateSubscription>[4],
    ): Promise<Subscription> {
      const changed = await db
        .transaction()
        .execute((trx) => updateSubscription(trx, caller, scope, id, next, clock()));
      if (changed === "missing") throw notFound("subscription");
      if (changed === "unchanged") throw conflict(`The subscription is ${next.state} already.`);
      return changed;
    }

    /** Readers learn of it at once; where Redis is away, whoever keeps the groups tells them later. */
    async function place({ row, topics }: Subscription): Promise<void> {
      const { id, startMs, state } = row;
      await ensureGroups(groups, { id, startMs, topics, isPaused: state === "paused" }).catch((err) => {
        log.warn(
          { event: "subscription.groups_late", err, subscription: id },
          "the groups of a changed subscription are placed later",
        );
      });
    }

    const turn = (action: "pause" | "resume", state: "paused" | "active", description: string) =>
      defineRoute(
        {
          method: "post",
          path: `/:subscriptionId/${action}`,
          operation: `${action}Subscription`,
          summary: `${action === "pause" ? "Pause" : "Resume"} a subscription`,
          description,
          params,
          body: nothing,
          answer: subscriptionSchema,
          conflict: `it is ${state} already`,
        },
        async ({ caller, params }) => {
          const scope = appScopeOf(caller, params);
          const changed = await change(caller, scope, params.subscriptionId, { action, state });
          await place(changed);
          return renderOne(deps, changed);
        },
      );

    return [
      turn(
        "pause",
        "paused",
        "Its handler gets no more events, and readers by `inlet-consumer` read no more; groups and what they have read stay. Whoever reads its group by other means is not held.",
      ),
      turn("resume", "active", "It goes on where it was paused."),
      defineRoute(
        {
          method: "post",
          path: "/:subscriptionId/rewind",
          operation: "rewindSubscription",
          summary: "Rewind a subscription",
          description:
            "Sets its consumer groups anew. What readers have in hand and did not acknowledge is no longer pending: the answer says how much that was.",
          params,
          body: rewindSchema,
          answer: rewoundSchema,
        },
        async ({ caller, params, body: { startAt } }) => {
          const scope = appScopeOf(caller, params);
          const startMs = startMsOf(startAt, await readRedisTimeMs(redis));
          const next = { action: "rewind", startAt: formatStartAt(startAt), startMs } as const;
          const changed = await change(caller, scope, params.subscriptionId, next);
          const { id } = changed.row;
          const dropped = await rewindSubscription(groups, { id, startMs, topics: changed.topics });
          return { ...(await renderOne(deps, changed)), dropped };
        },
      ),
    ];
  },
};
