import type { ExpressionBuilder } from "kysely";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row, Tables } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict, notFound } from "../../http/problem.ts";
import { isId } from "../../lib/ids.ts";

/**
 * An organization sees all of its own stores, and of others what these have opened to everybody. Only reading is opened so: a
 * writer owns the row, or its route says who else may write it.
 */
type Scope = Pick<Caller, "organizationId">;

/** Its own stores, and public ones. */
export const visibleStores = (db: Queryable, { organizationId }: Scope) =>
  db
    .selectFrom("stores")
    .where((eb) =>
      eb.or([eb("stores.organizationId", "=", organizationId), eb("stores.isPublic", "=", true)]),
    );

/** The ids of its own stores. */
export const ownStores = (db: Queryable, { organizationId }: Scope) =>
  db.selectFrom("stores").select("stores.id").where("stores.organizationId", "=", organizationId);

/** Categories of stores that it sees. */
export const visibleCategories = (db: Queryable, scope: Scope) =>
  db
    .selectFrom("storeCategories")
    .where("storeCategories.storeId", "in", visibleStores(db, scope).select("stores.id"));

/** The artifact is in one of its stores, or published in a public one. */
const isOffered = (eb: ExpressionBuilder<Tables, "artifacts">, scope: Scope) => {
  const open = eb.selectFrom("stores").select("stores.id").where("stores.isPublic", "=", true);
  const own = eb
    .selectFrom("stores")
    .select("stores.id")
    .where("stores.organizationId", "=", scope.organizationId);
  return eb.or([
    eb("artifacts.offeredIn", "in", own),
    eb.and([eb("artifacts.status", "=", "published"), eb("artifacts.offeredIn", "in", open)]),
  ]);
};

/** Its own artifacts, all that are in its stores, and those that are published in public ones. */
export const visibleArtifacts = (db: Queryable, scope: Scope) =>
  db
    .selectFrom("artifacts")
    .where((eb) => eb.or([eb("artifacts.organizationId", "=", scope.organizationId), isOffered(eb, scope)]));

/** Reviews by its own accounts, all in its stores, and those of artifacts published in public ones. */
export const visibleReviews = (db: Queryable, scope: Scope) =>
  db.selectFrom("storeReviews").where((eb) =>
    eb.or([
      eb("storeReviews.organizationId", "=", scope.organizationId),
      eb(
        "storeReviews.artifactId",
        "in",
        db
          .selectFrom("artifacts")
          .select("artifacts.id")
          .where((artifact) => isOffered(artifact, scope)),
      ),
    ]),
  );

/** Its own orders, and those in its stores. */
export const visibleOrders = (db: Queryable, { organizationId }: Scope) =>
  db
    .selectFrom("storeOrders")
    .where((eb) =>
      eb.or([
        eb("storeOrders.organizationId", "=", organizationId),
        eb("storeOrders.storeOrganizationId", "=", organizationId),
      ]),
    );

/**
 * The artifact as it is until the transaction ends: it stays in its store until its order or review is there.
 *
 * @throws ApiError 404 where the caller does not see it
 */
export async function lockArtifact(trx: Trx, caller: Caller, id: string): Promise<Row<"artifacts">> {
  const artifact = await visibleArtifacts(trx, caller)
    .selectAll()
    .where("id", "=", isId("art", id) ? id : "")
    .forShare()
    .executeTakeFirst();
  if (!artifact) throw notFound("artifact");
  return artifact;
}

/** The store that it is to be had from. @throws ApiError 409 */
export function requirePublished({ status, offeredIn }: Row<"artifacts">): string {
  if (status !== "published" || offeredIn === null) throw conflict("The artifact is not published.");
  return offeredIn;
}
