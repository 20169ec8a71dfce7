import { z } from "zod";
import { isMutedAt } from "../../../data/problems/problems.ts";
import { PROBLEM_KINDS } from "../../../event/problem.ts";
import type { Caller } from "../../../http/context.ts";
import { notFound } from "../../../http/errors.ts";
import { timestamp } from "../../../http/fields.ts";
import { pageQuery, shortListQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { listOf } from "../../kit/answer.ts";
import { listPage, mapPage, omitUndefined, slicePage } from "../../kit/list-page.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { problemActions } from "./actions.ts";
import { problemKind, problemSchema, problemState, renderRow } from "./schema.ts";

const listQuerySchema = z.object({
  ...pageQuery,
  state: problemState.optional().describe("Selects problems in this state."),
  kind: problemKind.optional().describe("Selects problems of this kind."),
  muted: z
    .enum(["true", "false"])
    .optional()
    .describe("`true` selects problems that are muted, `false` all others."),
  appId: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe("Id of an app. Selects problems that concern it or its channels and subscriptions."),
});

const problemCheckSchema = z
  .object({
    kind: problemKind,
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
  routes(deps) {
    const { db, clock } = deps;
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
        async handle({ caller, query: { limit, offset, muted, ...filters } }) {
          const nowMs = clock();
          const found = own(caller)
            .where((eb) => eb.and(omitUndefined(filters)))
            .$if(muted === "true", (query) => query.where(isMutedAt(nowMs)))
            .$if(muted === "false", (query) => query.where((eb) => eb.not(isMutedAt(nowMs)(eb))));
          return mapPage(await listPage(found, { limit, offset }), (row) => renderRow(row, nowMs));
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
          return renderRow(row, clock());
        },
      }),
      ...problemActions(deps),
    ];
  },
};

const timeOf = (date: Date | null): string | null => date && formatTimestamp(date.getTime());
