import { sql } from "kysely";
import type { Queryable } from "./database.ts";

export interface LeaseClaim {
  /** Name of a task that only one gateway may run at a time. */
  readonly name: string;
  /** Id of the gateway that claims the lease. Each gateway has a different id. */
  readonly holder: string;
  readonly ttlMs: number;
}

/**
 * Claims or renews a lease. If the result is true, the holder has the lease for `ttlMs`, counted from the start of this call by
 * PostgreSQL's clock.
 *
 * A lease is a row and not an advisory lock. An advisory lock would occupy a connection permanently, and would not work behind a
 * transaction pooler. It would also stay with a gateway whose machine has stopped responding.
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

/** Releases the lease, so that another gateway can claim it at once. Does nothing if another holder already has it. */
export async function releaseLease(db: Queryable, claim: Pick<LeaseClaim, "name" | "holder">): Promise<void> {
  await db.deleteFrom("leases").where("name", "=", claim.name).where("holder", "=", claim.holder).execute();
}
