import type { Updateable } from "kysely";
import { z } from "zod";
import { recordAudit } from "../../../data/accounts/audit.ts";
import type { AuditAction } from "../../../data/accounts/audit-entry.ts";
import type { Row, Tables } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import type { Deps } from "../../kit/deps.ts";
import { defineRoute, type Route } from "../../kit/route.ts";
import { type Problem, problemSchema, renderRow } from "./schema.ts";

const MAX_MUTE_SECONDS = 30 * 86_400;
const MAX_NOTE_CHARS = 500;

interface Change {
  readonly action: AuditAction;
  readonly fields?: readonly string[];
  readonly set: Updateable<Tables["problems"]>;
}

/** Routes that change an open problem. Each change is one audit entry. */
export function problemActions({ db, clock }: Pick<Deps, "db" | "clock">): readonly Route[] {
  /** Changes an open problem, unless `decide` returns `undefined`. @throws ApiError 404; 409 if the problem is resolved */
  const change = (
    caller: Caller,
    id: string,
    decide: (row: Row<"problems">, nowMs: number) => Change | undefined,
  ): Promise<Problem> =>
    db.transaction().execute(async (trx) => {
      const row = await trx
        .selectFrom("problems")
        .selectAll()
        .where("organizationId", "=", caller.organizationId)
        .where("id", "=", id)
        .forUpdate()
        .executeTakeFirst();
      if (!row) throw notFound("problem");
      if (row.state === "resolved") throw conflict("The problem is already resolved and cannot be changed.");
      const nowMs = clock();
      const decided = decide(row, nowMs);
      if (!decided) return renderRow(row, nowMs);
      const { action, fields = [], set } = decided;
      await recordAudit(trx, caller, { action, entity: "problem", id, fields }, nowMs);
      const changed = await trx
        .updateTable("problems")
        .set(set)
        .where("id", "=", id)
        .returningAll()
        .executeTakeFirstOrThrow();
      return renderRow(changed, nowMs);
    });
  const common = { answer: problemSchema, conflict: "the problem is already resolved" };

  return [
    defineRoute({
      ...common,
      at: "POST /problems/:problemId/acknowledge",
      operation: "acknowledgeProblem",
      summary: "Acknowledge a problem",
      description:
        "Marks the problem as known. It stays open until Inlet finds that it is resolved. Acknowledging it again has no effect.",
      body: z.strictObject({}),
      handle: ({ caller, params }) =>
        change(caller, params.problemId, ({ state }, nowMs) =>
          state === "acknowledged"
            ? undefined
            : {
                action: "acknowledge",
                set: {
                  state: "acknowledged",
                  acknowledgedAt: new Date(nowMs),
                  acknowledgedBy: caller.accountId,
                },
              },
        ),
    }),
    defineRoute({
      ...common,
      at: "POST /problems/:problemId/mute",
      operation: "muteProblem",
      summary: "Mute a problem for some time",
      description:
        "Until the mute ends, the problem does not count as open in the overview, and the metric `inlet_problems` counts it as `muted`. It stays listed, and Inlet still publishes its events, whose data has `mutedUntil`. If the problem recurs before then, it is muted again.",
      body: z.strictObject({
        forSeconds: z
          .int()
          .min(60)
          .max(MAX_MUTE_SECONDS)
          .meta({ description: "Time until the mute ends, in seconds.", example: 3_600 }),
      }),
      handle: ({ caller, params, body: { forSeconds } }) =>
        change(caller, params.problemId, (_, nowMs) => ({
          action: "mute",
          set: { mutedUntil: new Date(nowMs + forSeconds * 1_000), mutedBy: caller.accountId },
        })),
    }),
    defineRoute({
      ...common,
      at: "POST /problems/:problemId/unmute",
      operation: "unmuteProblem",
      summary: "End the mute of a problem",
      body: z.strictObject({}),
      handle: ({ caller, params }) =>
        change(caller, params.problemId, ({ mutedUntil }) =>
          mutedUntil === null ? undefined : { action: "unmute", set: { mutedUntil: null, mutedBy: null } },
        ),
    }),
    defineRoute({
      ...common,
      at: "PUT /problems/:problemId",
      operation: "updateProblem",
      summary: "Write a note on a problem",
      description:
        "The note is a short text for other people, such as who works on the problem. It is deleted with the problem, 30 days after the problem is resolved at the latest.",
      body: z.strictObject({
        note: z
          .string()
          .trim()
          .max(MAX_NOTE_CHARS)
          .nullable()
          .optional()
          .meta({ description: "The note. Null removes it.", example: "Ada asks the provider." }),
      }),
      handle: ({ caller, params, body }) =>
        change(caller, params.problemId, ({ note: before }) => {
          const note = body.note === undefined ? before : body.note || null;
          if (note === before) return undefined;
          return {
            action: "update",
            fields: ["note"],
            set: { note, notedBy: note === null ? null : caller.accountId },
          };
        }),
    }),
  ];
}
