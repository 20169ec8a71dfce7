import { sql } from "kysely";
import type { Queryable } from "./database.ts";

export interface LeaseClaim {
  /** Work of one gateway at a time. */
  readonly name: string;
  /** Unlike that of all others. */
  readonly holder: string;
  readonly ttlMs: number;
}

/**
 * Takes or renews a lease, by PostgreSQL's clock: true when it is the holder's for `ttlMs` from before the call.
 *
 * A row, not an advisory lock: that would hold one connection of the pool for ever, breaks behind a pooler that shares
 * connections between transactions, and would be kept by the server for a gateway whose machine fell silent.
 */
export async function claimLease(db: Queryable, claim: LeaseClaim): Promise<boolean> {
  const { rows } = await sql`
    INSERT INTO leases (name, holder, expires_at)
    VALUES (${claim.name}, ${claim.holder}, clock_timestamp() + make_interval(secs => ${claim.ttlMs / 1000}))
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
    WHERE leases.holder = excluded.holder OR leases.expires_at < clock_timestamp()
    RETURNING name`.execute(db);
  return rows.length > 0;
}

/** Gives a lease back, if it is the holder's. */
export async function releaseLease(db: Queryable, claim: Pick<LeaseClaim, "name" | "holder">): Promise<void> {
  await db.deleteFrom("leases").where("name", "=", claim.name).where("holder", "=", claim.holder).execute();
}
