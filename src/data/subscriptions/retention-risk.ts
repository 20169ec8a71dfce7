import { sql } from "kysely";
import type { Queryable } from "../database.ts";

export interface RiskChange {
  readonly id: string;
  readonly organizationId: string;
}

/** Marks subscriptions whose unread events may soon be trimmed. Returns only the newly marked subscriptions. */
export async function markAtRisk(db: Queryable, ids: readonly string[]): Promise<readonly RiskChange[]> {
  if (ids.length === 0) return [];
  return db
    .updateTable("subscriptions")
    .set({ retentionAtRisk: true })
    .where(sql<boolean>`id = ANY(${ids})`)
    .where("retentionAtRisk", "=", false)
    .returning(["id", "organizationId"])
    .execute();
}

/** Removes the mark from all subscriptions that are not listed in `atRisk`. Returns the subscriptions that lost their mark. */
export function clearRisk(db: Queryable, atRisk: readonly string[]): Promise<readonly RiskChange[]> {
  return db
    .updateTable("subscriptions")
    .set({ retentionAtRisk: false })
    .where("retentionAtRisk", "=", true)
    .where(sql<boolean>`NOT (id = ANY(${atRisk}))`)
    .returning(["id", "organizationId"])
    .execute();
}
