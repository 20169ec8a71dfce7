import type { Queryable } from "../../data/database.ts";
import type { Caller } from "../../http/context.ts";

/**
 * What an organization sees of stores: all of its own, and of others what these have opened to everybody. Reading alone is
 * opened so; whoever writes must own what is written, or be named by the route.
 */
type Scope = Pick<Caller, "organizationId">;

/** Its own stores, and public ones. */
export const visibleStores = (db: Queryable, { organizationId }: Scope) =>
  db
    .selectFrom("stores")
    .where((eb) =>
      eb.or([eb("stores.organizationId", "=", organizationId), eb("stores.isPublic", "=", true)]),
    );

/** Categories of those stores. */
export const visibleCategories = (db: Queryable, { organizationId }: Scope) =>
  db.selectFrom("storeCategories").where((eb) =>
    eb.exists(
      eb
        .selectFrom("stores")
        .select("stores.id")
        .whereRef("stores.id", "=", "storeCategories.storeId")
        .where((store) =>
          store.or([
            store("stores.organizationId", "=", organizationId),
            store("stores.isPublic", "=", true),
          ]),
        ),
    ),
  );

/** Its own artifacts, all that are in its stores, and those that are published in public ones. */
export const visibleArtifacts = (db: Queryable, { organizationId }: Scope) =>
  db.selectFrom("artifacts").where((eb) =>
    eb.or([
      eb("artifacts.organizationId", "=", organizationId),
      eb.exists(
        eb
          .selectFrom("stores")
          .select("stores.id")
          .whereRef("stores.id", "=", "artifacts.offeredIn")
          .where((store) =>
            store.or([
              store("stores.organizationId", "=", organizationId),
              store.and([store("stores.isPublic", "=", true), store("artifacts.status", "=", "published")]),
            ]),
          ),
      ),
    ]),
  );

/** What its own accounts have written, all in its stores, and what is about artifacts published in public ones. */
export const visibleReviews = (db: Queryable, { organizationId }: Scope) =>
  db.selectFrom("storeReviews").where((eb) =>
    eb.or([
      eb("storeReviews.organizationId", "=", organizationId),
      eb.exists(
        eb
          .selectFrom("stores")
          .innerJoin("artifacts", "artifacts.offeredIn", "stores.id")
          .select("stores.id")
          .whereRef("stores.id", "=", "storeReviews.storeId")
          .whereRef("artifacts.id", "=", "storeReviews.artifactId")
          .where((store) =>
            store.or([
              store("stores.organizationId", "=", organizationId),
              store.and([store("stores.isPublic", "=", true), store("artifacts.status", "=", "published")]),
            ]),
          ),
      ),
    ]),
  );

/** What it has bought, and what was bought in its stores. */
export const visibleOrders = (db: Queryable, { organizationId }: Scope) =>
  db
    .selectFrom("storeOrders")
    .where((eb) =>
      eb.or([
        eb("storeOrders.organizationId", "=", organizationId),
        eb("storeOrders.storeOrganizationId", "=", organizationId),
      ]),
    );
