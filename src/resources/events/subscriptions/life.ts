import { z } from "zod";
import { readRedisTimeMs } from "../../../bus/groups/groups.ts";
import { rewindSubscription } from "../../../bus/groups/subscription-groups.ts";
import { undoUncovered } from "../../../delivery/undo-uncovered.ts";
import type { Caller } from "../../../http/context.ts";
import { type AppScope, appScopeOf } from "../../apps/app-scope.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { type SubscriptionStep, updateSubscription } from "./queries.ts";
import { params, renderOne, type SubscriptionsDeps, startMsOf, tryEnsureGroups } from "./routes.ts";
import { formatStartAt, rewindSchema, rewoundSchema, subscriptionSchema } from "./schema.ts";

/** Pauses, resumes and rewinds a subscription. */
export const subscriptionLife: Resource<SubscriptionsDeps> = {
  path: "/apps/:appId/subscriptions",
  tag: "Subscriptions",
  routes: (deps) => {
    const { db, groups, redis, clock } = deps;

    const change = (caller: Caller, scope: AppScope, id: string, step: SubscriptionStep) =>
      db.transaction().execute((trx) => updateSubscription(trx, caller, scope, id, step, clock()));

    const turn = (step: Extract<SubscriptionStep, { state: string }>, description: string) =>
      defineRoute(
        {
          method: "post",
          path: `/:subscriptionId/${step.action}`,
          operation: `${step.action}Subscription`,
          summary: `${step.action === "pause" ? "Pause" : "Resume"} a subscription`,
          description,
          params,
          body: z.strictObject({}),
          answer: subscriptionSchema,
          conflict: `it is ${step.state} already`,
        },
        async ({ caller, params }) => {
          const scope = appScopeOf(caller, params);
          const changed = await change(caller, scope, params.subscriptionId, step);
          await tryEnsureGroups(deps, changed);
          return renderOne(deps, changed);
        },
      );

    return [
      turn(
        { action: "pause", state: "paused" },
        "Its handler gets no more events, and readers by `inlet-consumer` read no more; groups and what they have read stay. Other readers of its group are not held.",
      ),
      turn({ action: "resume", state: "active" }, "It goes on where it was paused."),
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
          const { topics } = changed;
          const dropped = await rewindSubscription(groups, { id, startMs, topics }).finally(() =>
            undoUncovered(deps, new Map([[id, topics]])),
          );
          return { ...(await renderOne(deps, changed)), dropped };
        },
      ),
    ];
  },
};
