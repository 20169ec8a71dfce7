import { INTAKE_KIND } from "../../event/intake.ts";
import { recordChange } from "../changes.ts";
import type { Queryable, Trx } from "../database.ts";
import type { Row } from "../tables.ts";

export type RouteKeyRow = Row<"routeKeys">;

/** A claim of a route key for an install. */
export interface Claim {
  readonly blueprintId: string;
  readonly appId: string;
  readonly key: string;
}

/**
 * Claims a route key for an install. Items that the intake holds for the key are published before later ones.
 *
 * @returns false if another install owns the key
 */
export async function claimKey(trx: Trx, claim: Claim, nowMs: number): Promise<boolean> {
  const made = await trx
    .insertInto("routeKeys")
    .values({ ...claim, createdAt: new Date(nowMs) })
    .onConflict((conflict) => conflict.columns(["blueprintId", "key"]).doNothing())
    .returning("key")
    .executeTakeFirst();
  if (made) {
    await noteRoutes(trx, claim.blueprintId);
    return true;
  }
  const row = await trx
    .selectFrom("routeKeys")
    .select("appId")
    .where("blueprintId", "=", claim.blueprintId)
    .where("key", "=", claim.key)
    .executeTakeFirst();
  return row?.appId === claim.appId;
}

/** Releases route keys of an install. Later items with such a key are held until another install claims it. */
export async function releaseKeys(
  trx: Trx,
  { blueprintId, appId }: Pick<Claim, "blueprintId" | "appId">,
  keys: readonly string[],
): Promise<void> {
  if (keys.length === 0) return;
  await trx
    .deleteFrom("routeKeys")
    .where("blueprintId", "=", blueprintId)
    .where("appId", "=", appId)
    .where("key", "in", keys)
    .execute();
  await noteRoutes(trx, blueprintId);
}

export const listKeys = (
  db: Queryable,
  blueprintId: string,
  appIds: readonly string[],
): Promise<RouteKeyRow[]> =>
  db
    .selectFrom("routeKeys")
    .selectAll()
    .where("blueprintId", "=", blueprintId)
    .where("appId", "in", appIds.length === 0 ? [""] : appIds)
    .orderBy("createdAt")
    .orderBy("key")
    .execute();

/** Returns whether an install owns the key. */
export async function hasOwner(db: Queryable, { blueprintId, key }: Omit<Claim, "appId">): Promise<boolean> {
  const row = await db
    .selectFrom("routeKeys")
    .select("key")
    .where("blueprintId", "=", blueprintId)
    .where("key", "=", key)
    .executeTakeFirst();
  return row !== undefined;
}

/** Makes all gateways look up the intake's route keys again. */
async function noteRoutes(trx: Trx, blueprintId: string): Promise<void> {
  const intake = await trx
    .selectFrom("channels")
    .select("number")
    .where("appId", "=", blueprintId)
    .where("kind", "=", INTAKE_KIND)
    .executeTakeFirst();
  if (intake) await recordChange(trx, { kind: "channel", key: String(intake.number) });
}
