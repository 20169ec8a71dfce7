import { sql } from "kysely";
import { bootstrap, bootstrapWithin, tellFirstStart } from "../../data/bootstrap.ts";
import type { Queryable } from "../../data/database.ts";
import type { ChannelDeps } from "./channels.ts";
import type { WantedOrganization } from "./check.ts";
import type { Report } from "./plan.ts";
import { type InTransaction, reconcile, type TellKey } from "./reconcile.ts";

export interface ApplyDeps extends Omit<ChannelDeps, "nowMs"> {
  readonly db: Queryable;
  readonly clock: () => number;
  readonly apiKey: string | undefined;
}

/**
 * Arbitrary id of an advisory lock in PostgreSQL. With this lock, two runs cannot create the same object, because only one config
 * file is applied at a time.
 */
const LOCK = 4_713_202;

/** Computes the plan by applying the whole config file in a transaction that is rolled back. */
export async function planSetUp(deps: ApplyDeps, wanted: readonly WantedOrganization[]): Promise<Report> {
  const { db, clock } = deps;
  const trx = await db.startTransaction().execute();
  try {
    await sql`SELECT pg_advisory_xact_lock(${LOCK})`.execute(trx);
    await bootstrapWithin(trx, deps);
    return await reconcile({ ...deps, nowMs: clock(), tellKey: async () => {} }, wanted, (run) => run(trx));
  } finally {
    await trx.rollback().execute();
  }
}

/**
 * Applies a config file, with one transaction per object. Applying the same file again makes no changes.
 *
 * @param tellKey shows the first API key of a new organization. The key is stored only after this promise resolves
 */
export async function applySetUp(
  deps: ApplyDeps,
  wanted: readonly WantedOrganization[],
  tellKey: TellKey,
): Promise<Report> {
  const { db, clock } = deps;
  await bootstrap(deps);
  await tellFirstStart(deps, async ({ apiKey }) => {
    if (apiKey !== undefined) await tellKey("default", apiKey);
  });
  const within: InTransaction = (run) =>
    db.transaction().execute(async (trx) => {
      await sql`SELECT pg_advisory_xact_lock(${LOCK})`.execute(trx);
      return run(trx);
    });
  return reconcile({ ...deps, nowMs: clock(), tellKey }, wanted, within);
}
