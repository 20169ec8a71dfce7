import { sql } from "kysely";
import { type Bootstrapped, bootstrap, bootstrapWithin } from "../../data/bootstrap.ts";
import type { Queryable } from "../../data/database.ts";
import type { ChannelDeps } from "./channels.ts";
import type { WantedOrganization } from "./check.ts";
import type { Report } from "./plan.ts";
import { type InTransaction, reconcile } from "./reconcile.ts";

export interface ApplyDeps extends Omit<ChannelDeps, "nowMs"> {
  readonly db: Queryable;
  readonly clock: () => number;
  readonly apiKey: string | undefined;
}

/** One set-up is applied at a time, so that none finds missing what another is making. Any number will do. */
const LOCK = 4_713_202;

/** Plans by applying everything in one transaction, which is then rolled back. */
export async function planSetUp(deps: ApplyDeps, wanted: readonly WantedOrganization[]): Promise<Report> {
  const { db, clock } = deps;
  const trx = await db.startTransaction().execute();
  try {
    await sql`SELECT pg_advisory_xact_lock(${LOCK})`.execute(trx);
    await bootstrapWithin(trx, deps);
    return await reconcile({ ...deps, nowMs: clock() }, wanted, (run) => run(trx));
  } finally {
    await trx.rollback().execute();
  }
}

/** Does it, each object in a transaction of its own. What is in force needs no step: to repeat it changes nothing. */
export async function applySetUp(
  deps: ApplyDeps,
  wanted: readonly WantedOrganization[],
): Promise<Report & { readonly firstStart: Bootstrapped }> {
  const { db, clock } = deps;
  const firstStart = await bootstrap(deps);
  const within: InTransaction = (run) =>
    db.transaction().execute(async (trx) => {
      await sql`SELECT pg_advisory_xact_lock(${LOCK})`.execute(trx);
      return run(trx);
    });
  return { ...(await reconcile({ ...deps, nowMs: clock() }, wanted, within)), firstStart };
}
