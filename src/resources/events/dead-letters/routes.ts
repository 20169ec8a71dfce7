import { z } from "zod";
import type { Queryable } from "../../../data/database.ts";
import {
  countDeadLetters,
  type DeadLetterRow,
  deleteDeadLetter,
  findDeadLetter,
  listDeadLetters,
} from "../../../data/subscriptions/dead-letters.ts";
import type { SendAgain } from "../../../event/handler.ts";
import { deleted } from "../../../http/fields.ts";
import { notFound } from "../../../http/problem.ts";
import type { Clock } from "../../../lib/clock.ts";
import { type AppScope, appParams, appScopeOf } from "../../apps/app-scope.ts";
import { listOf } from "../../kit/answer.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import {
  deadLetterSchema,
  listQuerySchema,
  redriveManyResultSchema,
  redriveManySchema,
  renderDeadLetter,
} from "./schema.ts";

export interface DeadLettersDeps {
  readonly db: Queryable;
  readonly sendAgain: SendAgain;
  readonly clock: Clock;
}

const ofSubscription = { ...appParams, subscriptionId: pathId("sub", "subscription") };
const params = { ...ofSubscription, deadLetterId: pathId("dl", "dead letter") };
const nothing = z.strictObject({});

/** What a subscription's handler did not take. */
export const deadLetters: Resource<DeadLettersDeps> = {
  path: "/apps/:appId/subscriptions/:subscriptionId/dead-letters",
  tag: "Dead letters",
  routes(deps) {
    const { db, clock } = deps;

    async function requireSubscription({ organizationId, appId }: AppScope, id: string): Promise<string> {
      const row = await db
        .selectFrom("subscriptions")
        .select("id")
        .where("id", "=", id)
        .where("appId", "=", appId)
        .where("organizationId", "=", organizationId)
        .executeTakeFirst();
      if (!row) throw notFound("subscription");
      return row.id;
    }

    async function getLetter(scope: AppScope, subscriptionId: string, id: string): Promise<DeadLetterRow> {
      await requireSubscription(scope, subscriptionId);
      const letter = await findDeadLetter(db, subscriptionId, id);
      if (!letter) throw notFound("dead letter");
      return letter;
    }

    /** The letter goes when its event is stored to be sent: cut off between the two, it is sent once all the same. */
    async function redrive({ id, subscriptionId, topic, entryId, fields }: DeadLetterRow): Promise<void> {
      await deps.sendAgain(id, { subscriptionId, topic, entryId, fields, firstAtMs: clock(), attempts: [] });
      await deleteDeadLetter(db, subscriptionId, id);
    }

    return [
      defineRoute(
        {
          method: "get",
          path: "/",
          operation: "listDeadLetters",
          summary: "List what a handler did not take",
          params: ofSubscription,
          query: listQuerySchema,
          answer: listOf(deadLetterSchema),
        },
        async ({ caller, params, query: { limit, offset, ...filter } }) => {
          const id = await requireSubscription(appScopeOf(caller, params), params.subscriptionId);
          const total = await countDeadLetters(db, id, filter);
          const rows = await listDeadLetters(db, id, filter, { limit, offset });
          return { items: rows.map(renderDeadLetter), total };
        },
      ),
      defineRoute(
        {
          method: "get",
          path: "/:deadLetterId",
          operation: "getDeadLetter",
          summary: "Get a dead letter",
          params,
          answer: deadLetterSchema,
        },
        async ({ caller, params }) =>
          renderDeadLetter(
            await getLetter(appScopeOf(caller, params), params.subscriptionId, params.deadLetterId),
          ),
      ),
      defineRoute(
        {
          method: "delete",
          path: "/:deadLetterId",
          operation: "deleteDeadLetter",
          summary: "Delete a dead letter",
          params,
          answer: deleted,
        },
        async ({ caller, params }) => {
          const { id, subscriptionId } = await getLetter(
            appScopeOf(caller, params),
            params.subscriptionId,
            params.deadLetterId,
          );
          await deleteDeadLetter(db, subscriptionId, id);
          return { id };
        },
      ),
      defineRoute(
        {
          method: "post",
          path: "/redrive",
          operation: "redriveDeadLetters",
          summary: "Send many dead letters to the handler again",
          description:
            "The oldest first, each with a whole day of attempts; `dryRun` counts what would be sent.",
          params: ofSubscription,
          body: redriveManySchema,
          answer: redriveManyResultSchema,
        },
        async ({ caller, params, body: { dryRun, limit, ...filter } }) => {
          const id = await requireSubscription(appScopeOf(caller, params), params.subscriptionId);
          const matched = await countDeadLetters(db, id, filter);
          if (dryRun) return { matched, redriven: 0 };
          const rows = await listDeadLetters(db, id, filter, { limit, offset: 0 });
          for (const row of rows) await redrive(row);
          return { matched, redriven: rows.length };
        },
      ),
      defineRoute(
        {
          method: "post",
          path: "/:deadLetterId/redrive",
          operation: "redriveDeadLetter",
          summary: "Send a dead letter to the handler again",
          description:
            "It leaves the list; where the handler does not take it in another day, it comes back.",
          params,
          body: nothing,
          answer: deleted,
        },
        async ({ caller, params }) => {
          const letter = await getLetter(
            appScopeOf(caller, params),
            params.subscriptionId,
            params.deadLetterId,
          );
          await redrive(letter);
          return { id: letter.id };
        },
      ),
    ];
  },
};
