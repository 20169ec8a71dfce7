import { z } from "zod";
import { recordAudit } from "../../data/accounts/audit.ts";
import { type ProblemFacts, renderProblem } from "../../data/problems/render-problem.ts";
import { PROBLEM_KINDS, PROBLEM_SEVERITIES, PROBLEM_STATES } from "../../event/problem.ts";
import type { Caller } from "../../http/context.ts";
import { conflict, notFound } from "../../http/errors.ts";
import { id, type Shown, timestamp } from "../../http/fields.ts";
import { pageQuery, shortListQuery } from "../../http/page.ts";
import { formatTimestamp } from "../../lib/clock.ts";
import { listOf } from "../kit/answer.ts";
import { listPage, mapPage, omitUndefined, slicePage } from "../kit/list-page.ts";
import { pathId } from "../kit/params.ts";
import type { Resource } from "../kit/resource.ts";
import { defineRoute } from "../kit/route.ts";

const kind = z.enum(PROBLEM_KINDS);
const state = z.enum(PROBLEM_STATES);

const problemSchema = z
  .object({
    id: id("prob"),
    organizationId: id("org"),
    kind,
    state: state.meta({
      description:
        "`opened`: detected. `acknowledged`: marked as known, but not resolved. `resolved`: no longer present.",
    }),
    severity: z.enum(PROBLEM_SEVERITIES).meta({
      description:
        "`error`: events are being rejected, not delivered, or lost. `warning`: this may happen soon.",
    }),
    message: z.string().meta({
      description: "Explanation of the problem, as of the last check.",
      example: "The channel got no event for more than 1 hour (`expectEverySeconds`).",
    }),
    suggestedAction: z.string().meta({
      description: "Suggested action to resolve the problem.",
      example: "Check that the sender still sends events, and to the channel's current address.",
    }),
    figures: z.record(z.string(), z.number()).meta({
      description: "Values of the last measurement. The names include the units.",
      example: { expectEverySeconds: 3600 },
    }),
    app: z.object({ id: id("app"), uid: z.string(), title: z.string() }).nullable(),
    channel: z.object({ uid: z.string(), title: z.string().nullable() }).nullable(),
    subscription: z.object({ id: id("sub"), eventUid: z.string() }).nullable(),
    connection: z.object({ id: id("con"), name: z.string() }).nullable(),
    blueprint: z
      .object({ id: id("bp"), uid: z.string(), title: z.string() })
      .nullable()
      .meta({ description: "The blueprint whose intake is affected." }),
    firstSeenAt: timestamp,
    lastSeenAt: timestamp,
    acknowledgedAt: timestamp.nullable(),
    acknowledgedBy: z.string().nullable().meta({ description: "Id of the account that acknowledged it." }),
    resolvedAt: timestamp.nullable(),
  })
  .meta({
    id: "Problem",
    description:
      "A problem that Inlet has detected in an organization. The app, channel, subscription, connection or blueprint concerned keeps the name it had at that time, and may have been deleted since. If all five are null, the problem concerns the whole organization.",
  });
export type Problem = Shown<z.output<typeof problemSchema>>;

const render = (row: ProblemFacts): Problem => renderProblem(row);

const listQuerySchema = z.object({
  ...pageQuery,
  state: state.optional().describe("Selects problems in this state."),
  kind: kind.optional().describe("Selects problems of this kind."),
  appId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Id of an app. Selects problems that concern it or its channels and subscriptions."),
});

const problemCheckSchema = z
  .object({
    kind,
    lastCheckedAt: timestamp
      .nullable()
      .meta({ description: "Time of the last check. Null if never checked." }),
    failingSince: timestamp.nullable().meta({
      description:
        "Time since which the checks have been failing. Meanwhile, listed problems may be outdated and new ones missing. Null if the checks work.",
    }),
  })
  .meta({ id: "ProblemCheck", description: "When problems of a kind were last checked." });

export const problems: Resource = {
  tag: "Problems",
  params: { problemId: pathId("prob", "problem") },
  routes: ({ db, clock }) => {
    const own = (caller: Caller) =>
      db.selectFrom("problems").selectAll().where("organizationId", "=", caller.organizationId);

    return [
      defineRoute({
        at: "GET /problems",
        operation: "listProblems",
        summary: "List problems",
        description:
          "Lists problems in the order in which they were detected. Resolved problems are included: Inlet keeps the newest 1,000 for 30 days. Whenever a problem is opened or resolved, Inlet also publishes an event in the app `inlet`.",
        query: listQuerySchema,
        answer: listOf(problemSchema),
        async handle({ caller, query: { limit, offset, ...filters } }) {
          const found = own(caller).where((eb) => eb.and(omitUndefined(filters)));
          return mapPage(await listPage(found, { limit, offset }), render);
        },
      }),
      defineRoute({
        at: "GET /problems/checks",
        operation: "listProblemChecks",
        summary: "List when each kind of problem was last checked",
        description:
          "Lists each kind of problem with the time of its last check. Some kinds can only be checked with Redis. While Redis is unavailable, or shortly after another gateway has taken over the checks, problems of these kinds are neither opened nor resolved.",
        query: shortListQuery,
        answer: listOf(problemCheckSchema),
        async handle({ query }) {
          const rows = await db.selectFrom("problemLooks").selectAll().execute();
          const items = PROBLEM_KINDS.map((kind) => {
            const { lookedAt = null, failingSince = null } = rows.find((row) => row.kind === kind) ?? {};
            return { kind, lastCheckedAt: timeOf(lookedAt), failingSince: timeOf(failingSince) };
          });
          return slicePage(items, query);
        },
      }),
      defineRoute({
        at: "GET /problems/:problemId",
        operation: "getProblem",
        summary: "Get a problem",
        answer: problemSchema,
        async handle({ caller, params }) {
          const row = await own(caller).where("id", "=", params.problemId).executeTakeFirst();
          if (!row) throw notFound("problem");
          return render(row);
        },
      }),
      defineRoute({
        at: "POST /problems/:problemId/acknowledge",
        operation: "acknowledgeProblem",
        summary: "Acknowledge a problem",
        description:
          "Marks the problem as known. It stays open until Inlet finds that it is resolved. Acknowledging it again has no effect.",
        body: z.strictObject({}),
        answer: problemSchema,
        conflict: "the problem is already resolved",
        handle: async ({ caller, params: { problemId: id } }) =>
          db.transaction().execute(async (trx) => {
            const row = await trx
              .selectFrom("problems")
              .selectAll()
              .where("organizationId", "=", caller.organizationId)
              .where("id", "=", id)
              .forUpdate()
              .executeTakeFirst();
            if (!row) throw notFound("problem");
            if (row.state === "resolved")
              throw conflict("The problem is already resolved and cannot be acknowledged.");
            if (row.state === "acknowledged") return render(row);
            const nowMs = clock();
            await recordAudit(trx, caller, { action: "acknowledge", entity: "problem", id }, nowMs);
            const acknowledged = await trx
              .updateTable("problems")
              .set({
                state: "acknowledged",
                acknowledgedAt: new Date(nowMs),
                acknowledgedBy: caller.accountId,
              })
              .where("id", "=", id)
              .returningAll()
              .executeTakeFirstOrThrow();
            return render(acknowledged);
          }),
      }),
    ];
  },
};

const timeOf = (date: Date | null): string | null => date && formatTimestamp(date.getTime());
