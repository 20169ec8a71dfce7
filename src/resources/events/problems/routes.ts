import { z } from "zod";
import { recordAudit } from "../../../data/accounts/audit.ts";
import { PROBLEM_KINDS } from "../../../event/problem.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import { shortListQuery } from "../../../http/page.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { listOf } from "../../kit/answer.ts";
import { listPage, mapPage, omitUndefined, slicePage } from "../../kit/list-page.ts";
import { pathId } from "../../kit/params.ts";
import type { Resource } from "../../kit/resource.ts";
import { defineRoute } from "../../kit/route.ts";
import { listQuerySchema, problemCheckSchema, problemSchema, render } from "./schema.ts";

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
