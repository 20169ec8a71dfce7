import type { ExpressionBuilder } from "kysely";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row, Tables } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict, notFound } from "../../http/errors.ts";
import { isId } from "../../lib/ids.ts";

/**
 * Determines read access to stores. An organization sees everything in its own stores, and published content in public stores. To write a
 * row, it must own the row, unless a route allows other writers.
 */
type Scope = Pick<Caller, "organizationId">;

/** Selects the organization's own stores and all public stores. */
export const visibleStores = (db: Queryable, { organizationId }: Scope) =>
  db
    .selectFrom("stores")
    .where((eb) =>
      eb.or([eb("stores.organizationId", "=", organizationId), eb("stores.isPublic", "=", true)]),
    );

export const ownStores = (db: Queryable, { organizationId }: Scope) =>
  db.selectFrom("stores").select("stores.id").where("stores.organizationId", "=", organizationId);

export const visibleCategories = (db: Queryable, scope: Scope) =>
  db
    .selectFrom("storeCategories")
    .where("storeCategories.storeId", "in", visibleStores(db, scope).select("stores.id"));

/** SQL condition: the artifact is in one of the organization's stores, or is published in a public store. */
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

/** Selects the organization's own artifacts, all artifacts in its stores, and published artifacts in public stores. */
export const visibleArtifacts = (db: Queryable, scope: Scope) =>
  db
    .selectFrom("artifacts")
    .where((eb) => eb.or([eb("artifacts.organizationId", "=", scope.organizationId), isOffered(eb, scope)]));

/** Selects the organization's own reviews, all reviews in its stores, and reviews of published artifacts in public stores. */
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

/** Selects the organization's own orders and all orders in its stores. */
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
 * Returns the artifact and locks it until the transaction ends, so that it stays in its store until an order or review is written.
 *
 * @throws ApiError 404 if the artifact is not visible to the caller
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

/** Returns the id of the store that offers the artifact. @throws ApiError 409 if it is not published */
export function requirePublished({ status, offeredIn }: Row<"artifacts">): string {
  if (status !== "published" || offeredIn === null) throw conflict("The artifact is not published.");
  return offeredIn;
}
