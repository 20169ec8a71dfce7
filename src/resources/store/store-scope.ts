import type { ExpressionBuilder } from "kysely";
import type { Queryable, Trx } from "../../data/database.ts";
import type { Row, Tables } from "../../data/tables.ts";
import type { Caller } from "../../http/context.ts";
import { conflict, notFound } from "../../http/errors.ts";
import { isId } from "../../lib/ids.ts";

/**
 * Organization whose access is checked. It can see all content of its own stores and published content of public
 * stores, but by default only write its own rows.
 */
type Scope = Pick<Caller, "organizationId">;

/** Selects the stores of the caller's organization and all public stores. */
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

/** SQL condition: the artifact is in a store of the organization, or is published in a public store. */
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

/** Selects artifacts of the organization, artifacts in its stores, and published artifacts in public stores. */
export const visibleArtifacts = (db: Queryable, scope: Scope) =>
  db
    .selectFrom("artifacts")
    .where((eb) => eb.or([eb("artifacts.organizationId", "=", scope.organizationId), isOffered(eb, scope)]));

/** Selects reviews by the organization, reviews in its stores, and reviews of published artifacts in public stores. */
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
 * Returns the artifact and locks it until the transaction ends, so that it cannot leave its store meanwhile.
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

/** Returns the id of the artifact's store. @throws ApiError 409 if the artifact is not published */
export function requirePublished({ status, offeredIn }: Row<"artifacts">): string {
  if (status !== "published" || offeredIn === null) throw conflict("The artifact is not published.");
  return offeredIn;
}
