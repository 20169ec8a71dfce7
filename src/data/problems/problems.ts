import { type ExpressionBuilder, sql } from "kysely";
import {
  type ProblemAbout,
  type ProblemChange,
  type ProblemKind,
  type ProblemSeverity,
  problemEventType,
} from "../../event/problem.ts";
import { createId } from "../../lib/ids.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Row, Tables } from "../tables.ts";
import { hasMute, renderProblem } from "./render-problem.ts";

export interface Sighting {
  readonly kind: ProblemKind;
  readonly organizationId: string;
  /** Id of the affected object. Its kind and subject identify a problem. */
  readonly subject: string;
  /** `raised`, the default, opens a problem. `near` does not open a problem, but keeps an open problem from being resolved. */
  readonly level?: "raised" | "near" | undefined;
  readonly severity: ProblemSeverity;
  readonly about: ProblemAbout;
  readonly message: string;
  readonly suggestedAction: string;
  /** Measured values that the message contains. */
  readonly figures?: Readonly<Record<string, number>>;
}

export type OpenProblem = Pick<Row<"problems">, "id" | "kind" | "organizationId" | "subject">;

/** Maximum number of open problems per organization. Above it, no new problems are opened. */
export const MOST_OPEN = 1_000;
export const MOST_RESOLVED = 1_000;
export const RESOLVED_KEPT_DAYS = 30;

export const listOpenProblems = (
  db: Queryable,
): Promise<readonly (OpenProblem & Pick<Row<"problems">, "state" | "mutedUntil">)[]> =>
  db
    .selectFrom("problems")
    .select(["id", "kind", "organizationId", "subject", "state", "mutedUntil"])
    .where(isOpen)
    .orderBy("id")
    .execute();

/**
 * Opens a problem and records an event about it. Returns `undefined` if the problem is already open, or if its organization has too
 * many open problems.
 */
export function openProblem(
  db: Queryable,
  sighting: Sighting,
  { seenSince, nowMs }: { readonly seenSince: Date; readonly nowMs: number },
): Promise<Row<"problems"> | undefined> {
  const { level: _, about, figures = {}, suggestedAction: cure, ...values } = sighting;
  return db.transaction().execute(async (trx) => {
    const { organizationId } = sighting;
    const organization = trx.selectFrom("organizations").select("id").where("id", "=", organizationId);
    if (!(await organization.forKeyShare().executeTakeFirst())) return undefined;
    const open = await trx
      .selectFrom("problems")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("organizationId", "=", organizationId)
      .where(isOpen)
      .executeTakeFirstOrThrow();
    if (open.count >= MOST_OPEN) return undefined;
    const mute = await findMute(trx, sighting, nowMs);
    const row = await trx
      .insertInto("problems")
      .values({
        ...values,
        ...mute,
        cure,
        id: createId("prob", nowMs),
        state: "opened",
        appId: about.app?.id ?? null,
        about: JSON.stringify(about),
        figures: JSON.stringify(figures),
        firstSeenAt: seenSince,
        lastSeenAt: new Date(nowMs),
        createdAt: new Date(nowMs),
      })
      .onConflict((conflict) =>
        conflict.columns(["organizationId", "kind", "subject"]).where(isOpen).doNothing(),
      )
      .returningAll()
      .executeTakeFirst();
    if (row) await recordEvent(trx, row, "opened", nowMs);
    return row;
  });
}

/** Finds the mute of the preceding problem of the same kind and subject, so that a recurring problem stays muted. */
async function findMute(
  trx: Trx,
  { organizationId, kind, subject }: Sighting,
  nowMs: number,
): Promise<Pick<Row<"problems">, "mutedUntil" | "mutedBy"> | undefined> {
  // Older problems can have a mute that was ended in the preceding one.
  const preceding = await trx
    .selectFrom("problems")
    .select(["mutedUntil", "mutedBy"])
    .where((eb) => eb.and({ organizationId, kind, subject }))
    .orderBy("createdAt", "desc")
    .orderBy("id", "desc")
    .limit(1)
    .executeTakeFirst();
  return preceding && hasMute(preceding, nowMs) ? preceding : undefined;
}

export async function refreshProblems(
  db: Queryable,
  seen: readonly (Sighting & { readonly id: string })[],
  nowMs: number,
): Promise<void> {
  if (seen.length === 0) return;
  const rows = seen.map(({ id, severity, about, message, suggestedAction, figures = {} }) => ({
    id,
    severity,
    about,
    message,
    cure: suggestedAction,
    figures,
  }));
  await sql`
    UPDATE problems AS p SET last_seen_at = ${new Date(nowMs)}, severity = s.severity, about = s.about,
      message = s.message, cure = s.cure, figures = s.figures
    FROM json_to_recordset(${JSON.stringify(rows)}::json)
      AS s (id text, severity text, about json, message text, cure text, figures json)
    WHERE p.id = s.id AND p.state <> 'resolved'`.execute(db);
}

/** Resolves a problem and records an event about it. Returns `undefined` if the problem is already resolved. */
export function resolveProblem(
  db: Queryable,
  id: string,
  nowMs: number,
): Promise<Row<"problems"> | undefined> {
  return db.transaction().execute(async (trx) => {
    const row = await trx
      .updateTable("problems")
      .set({ state: "resolved", resolvedAt: new Date(nowMs) })
      .where("id", "=", id)
      .where(isOpen)
      .returningAll()
      .executeTakeFirst();
    if (row) await recordEvent(trx, row, "resolved", nowMs);
    return row;
  });
}

const isOpen = (eb: ExpressionBuilder<Tables, "problems">) => eb("state", "<>", "resolved");

/** Selects problems that are muted at a time. */
export const isMutedAt = (nowMs: number) => (eb: ExpressionBuilder<Tables, "problems">) =>
  eb.and([isOpen(eb), eb("mutedUntil", "is not", null), eb("mutedUntil", ">", new Date(nowMs))]);

async function recordEvent(
  trx: Trx,
  row: Row<"problems">,
  change: ProblemChange,
  nowMs: number,
): Promise<void> {
  const { id, organizationId, kind } = row;
  const type = problemEventType(kind, change);
  const data = JSON.stringify(renderProblem(row, hasMute(row, nowMs)));
  await trx
    .insertInto("problemEvents")
    .values({ problemId: id, organizationId, type, data, createdAt: new Date(nowMs) })
    .execute();
}

export type UnpublishedChange = Row<"problemEvents"> & { readonly subject: string };

export const listUnpublishedChanges = (
  db: Queryable,
  page: { readonly after: number; readonly limit: number },
): Promise<readonly UnpublishedChange[]> =>
  db
    .selectFrom("problemEvents as e")
    .innerJoin("problems as p", "p.id", "e.problemId")
    .selectAll("e")
    .select("p.subject")
    .where("e.number", ">", page.after)
    .orderBy("e.number")
    .limit(page.limit)
    .execute();

export async function deletePublishedChange(db: Queryable, number: number): Promise<void> {
  await db.deleteFrom("problemEvents").where("number", "=", number).execute();
}

/**
 * Deletes resolved problems that are older than `RESOLVED_KEPT_DAYS`, or beyond the newest `MOST_RESOLVED` of their organization. Keeps
 * problems with unpublished events.
 */
export async function expireProblems(db: Queryable, nowMs: number): Promise<void> {
  const before = new Date(nowMs - RESOLVED_KEPT_DAYS * 86_400_000);
  await sql`
    DELETE FROM problems AS p USING (
      SELECT id, resolved_at,
        row_number() OVER (PARTITION BY organization_id ORDER BY resolved_at DESC, id DESC) AS place
      FROM problems WHERE state = 'resolved'
    ) AS old
    WHERE p.id = old.id AND (old.place > ${MOST_RESOLVED} OR old.resolved_at < ${before})
      AND NOT EXISTS (SELECT FROM problem_events AS e WHERE e.problem_id = p.id)`.execute(db);
}

/** Records which kinds of problems were checked, and which of these checks failed. */
export async function recordChecks(
  db: Queryable,
  looks: { readonly done: readonly ProblemKind[]; readonly failed: readonly ProblemKind[] },
  nowMs: number,
): Promise<void> {
  const at = new Date(nowMs);
  const { done, failed } = looks;
  if (done.length > 0)
    await db
      .insertInto("problemLooks")
      .values(done.map((kind) => ({ kind, lookedAt: at, failingSince: null })))
      .onConflict((conflict) => conflict.column("kind").doUpdateSet({ lookedAt: at, failingSince: null }))
      .execute();
  if (failed.length > 0)
    await db
      .insertInto("problemLooks")
      .values(failed.map((kind) => ({ kind, lookedAt: null, failingSince: at })))
      .onConflict((conflict) =>
        conflict
          .column("kind")
          .doUpdateSet({ failingSince: sql`coalesce(problem_looks.failing_since, excluded.failing_since)` }),
      )
      .execute();
}
