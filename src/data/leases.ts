import { sql } from "kysely";
import type { Queryable } from "./database.ts";

export interface LeaseClaim {
  /** Name of the work that only one gateway does at a time. */
  readonly name: string;
  /** Unique id of the gateway that claims or holds the lease. */
  readonly holder: string;
  readonly ttlMs: number;
}

/**
 * Claims or renews a lease by PostgreSQL's clock. If it returns true, the holder has the lease for `ttlMs`, measured from the start
 * of the call.
 *
 * A lease is stored as a row instead of an advisory lock. An advisory lock would occupy a connection permanently and fail behind a
 * transaction pooler. It would also stay with a gateway whose machine stopped responding.
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

/** Releases a lease if the holder still has it. */
export async function releaseLease(db: Queryable, claim: Pick<LeaseClaim, "name" | "holder">): Promise<void> {
  await db.deleteFrom("leases").where("name", "=", claim.name).where("holder", "=", claim.holder).execute();
}
