import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, notFound } from "../../../http/errors.ts";
import { visibleCategories, visibleStores } from "../../store/store-scope.ts";
import type { ArtifactRow } from "./schema.ts";

type Status = ArtifactRow["status"];
type Content = Pick<ArtifactRow, (typeof APPROVAL_FIELDS)[number] | "categoryId"> & {
  readonly storeId: string | null;
};

/** Fields of a store artifact whose change can require a new approval by the store. */
const APPROVAL_FIELDS = ["kind", "title", "description", "blueprintId"] as const;

/**
 * Returns the status of a new store artifact.
 * @throws ApiError 404 if the store or category does not exist; 409 if the store does not accept artifacts of other organizations
 */
export async function computeNewStatus(
  trx: Trx,
  caller: Caller,
  { storeId, categoryId }: Pick<Content, "storeId" | "categoryId">,
): Promise<Status> {
  if (storeId === null) return "draft";
  const store = await lockStore(trx, caller, storeId);
  await requireCategory(trx, caller, storeId, categoryId);
  if (store.organizationId === caller.organizationId) return "published";
  if (!store.allowSubmissions)
    throw conflict("The store does not accept artifacts of other organizations (`allowSubmissions`).");
  return store.requireApproval ? "pending" : "published";
}

/**
 * Returns an artifact's status after an edit by its organization. An artifact that moves to another store is treated as new. In another
 * organization's store, a change to one of `APPROVAL_FIELDS` makes a rejected artifact pending again, and also a published one if the store
 * requires approval.
 *
 * @throws ApiError 404 if the new store or category does not exist
 * @throws ApiError 409 if the artifact has orders or reviews and would leave its store
 * @throws ApiError 409 if the new store does not accept artifacts of other organizations
 */
export async function computeChangedStatus(
  trx: Trx,
  caller: Caller,
  before: ArtifactRow,
  after: Content,
): Promise<Status> {
  if (after.storeId !== before.offeredIn) {
    const status = await computeNewStatus(trx, caller, after);
    if (await hasOrdersOrReviews(trx, before.id))
      throw conflict("The artifact has orders or reviews, so it cannot leave its store.");
    return status;
  }
  if (after.storeId === null) return "draft";
  if (after.categoryId !== before.categoryId)
    await requireCategory(trx, caller, after.storeId, after.categoryId);
  const isSame = APPROVAL_FIELDS.every((name) => after[name] === before[name]);
  if (isSame || before.status === "pending") return before.status;
  const store = await trx
    .selectFrom("stores")
    .selectAll()
    .where("id", "=", after.storeId)
    .forShare()
    .executeTakeFirstOrThrow();
  if (store.organizationId === caller.organizationId) return before.status;
  return before.status === "rejected" || store.requireApproval ? "pending" : before.status;
}

/** Returns the store and locks it against changes until the transaction ends. @throws ApiError 404 if the caller may not see the store */
async function lockStore(trx: Trx, caller: Caller, id: string): Promise<Row<"stores">> {
  const store = await visibleStores(trx, caller)
    .selectAll()
    .where("id", "=", id)
    .forShare()
    .executeTakeFirst();
  if (!store) throw notFound("store");
  return store;
}

/** Checks that the category exists in the store. @throws ApiError 404 if it does not exist, or the caller may not see it */
async function requireCategory(trx: Trx, caller: Caller, storeId: string, id: string | null): Promise<void> {
  if (id === null) return;
  const found = await visibleCategories(trx, caller)
    .select("id")
    .where("id", "=", id)
    .where("storeId", "=", storeId)
    .forKeyShare()
    .executeTakeFirst();
  if (!found) throw notFound("store category");
}

/** Creating an order or a review locks the artifact's row, so the result stays valid until the transaction ends. */
async function hasOrdersOrReviews(trx: Trx, artifactId: string): Promise<boolean> {
  for (const table of ["storeOrders", "storeReviews"] as const) {
    const query = trx.selectFrom(table).select("id").where("artifactId", "=", artifactId).limit(1);
    if ((await query.executeTakeFirst()) !== undefined) return true;
  }
  return false;
}
