import { sql } from "kysely";
import type { Queryable } from "../database.ts";

const AT_ONCE = 1_000;

/** Deletes audit entries and records of deleted events that are older than `retentionDays`. Deletes them in small batches. */
export async function expireAudit(
  db: Queryable,
  retentionDays: number,
  { nowMs, signal }: { readonly nowMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const before = new Date(nowMs - retentionDays * 86_400_000);
  for (const [table, time] of [
    ["audit", "created_at"],
    ["audit_refusals", "hour"],
    ["deleted_events", "deleted_at"],
  ] as const) {
    let deleted = AT_ONCE;
    while (deleted === AT_ONCE && !signal.aborted) {
      const { numAffectedRows } = await sql`
        DELETE FROM ${sql.table(table)} WHERE ctid = ANY(ARRAY(
          SELECT ctid FROM ${sql.table(table)} WHERE ${sql.ref(time)} < ${before} LIMIT ${AT_ONCE}
        ))`.execute(db);
      deleted = Number(numAffectedRows ?? 0);
    }
  }
}
