import { z } from "zod";
import { idBefore } from "../../../bus/entry-id.ts";
import { readRedisTimeMs } from "../../../bus/groups/groups.ts";
import { rewindSubscription } from "../../../bus/groups/subscription-groups.ts";
import type { Caller } from "../../../http/context.ts";
import { removeUncoveredGroups } from "../../../maintenance/remove-uncovered-groups.ts";
import { type AppScope, appScopeOf, subscriptionParams } from "../../apps/app-scope.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { type SubscriptionStep, updateSubscription } from "./queries.ts";
import { renderOne, startMsOf, tryEnsureGroups } from "./routes.ts";
import { formatStartAt, rewindSchema, rewoundSchema, subscriptionSchema } from "./schema.ts";

/** Pauses, resumes and rewinds a subscription. */
export const subscriptionLife: Resource = {
  tag: "Subscriptions",
  params: subscriptionParams,
  routes: (deps) => {
    const { db, groups, redis, clock } = deps;

    const change = (caller: Caller, scope: AppScope, id: string, step: SubscriptionStep) =>
      db.transaction().execute((trx) => updateSubscription(trx, caller, scope, id, step, clock()));

    const turn = (step: Extract<SubscriptionStep, { state: string }>, description: string) =>
      defineRoute({
        at: `POST /apps/:appId/subscriptions/:subscriptionId/${step.action}`,
        operation: `${step.action}Subscription`,
        summary: `${step.action === "pause" ? "Pause" : "Resume"} a subscription`,
        description,
        body: z.strictObject({}),
        answer: subscriptionSchema,
        conflict: `the subscription is already ${step.state}`,
        async handle({ caller, params }) {
          const scope = appScopeOf(caller, params);
          const changed = await change(caller, scope, params.subscriptionId, step);
          await tryEnsureGroups(deps, changed);
          return renderOne(deps, changed);
        },
      });

    return [
      turn(
        { action: "pause", state: "paused" },
        "Stops the handler and readers that use `inlet-consumer`. The consumer groups keep their positions. Readers that use Redis directly are not stopped.",
      ),
      turn(
        { action: "resume", state: "active" },
        "Continues from the position at which the subscription was paused.",
      ),
      defineRoute({
        at: "POST /apps/:appId/subscriptions/:subscriptionId/rewind",
        operation: "rewindSubscription",
        summary: "Rewind a subscription",
        description:
          "Moves the subscription's consumer groups to the given position. Entries that readers have received but not acknowledged are no longer pending. `dropped` in the response is their number.",
        body: rewindSchema,
        answer: rewoundSchema,
        async handle({ caller, params, body: { startAt } }) {
          const scope = appScopeOf(caller, params);
          const startMs = startMsOf(startAt, await readRedisTimeMs(redis));
          const next = { action: "rewind", startAt: formatStartAt(startAt), startMs } as const;
          const changed = await change(caller, scope, params.subscriptionId, next);
          const { id } = changed.row;
          const { topics } = changed;
          const dropped = await rewindSubscription(groups, {
            id,
            startId: idBefore(startMs),
            topics,
          }).finally(() => removeUncoveredGroups(deps, new Map([[id, topics]])));
          return { ...(await renderOne(deps, changed)), dropped };
        },
      }),
    ];
  },
};
