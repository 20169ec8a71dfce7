import type { Trx } from "../../../data/database.ts";
import type { Row } from "../../../data/tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict, notFound } from "../../../http/problem.ts";
import { visibleCategories, visibleStores } from "../../store/store-scope.ts";
import type { ArtifactRow } from "./schema.ts";

type Status = ArtifactRow["status"];
/** An artifact as its organization writes it. */
type Content = Pick<ArtifactRow, (typeof KNOWN)[number] | "categoryId"> & { readonly storeId: string | null };

/** A change of one of these may need another approval. */
const KNOWN = ["kind", "title", "description", "blueprintId"] as const;

/**
 * The status of a new artifact.
 *
 * @throws ApiError 404 where store or category are not there, 409 where the store takes nothing of other organizations
 */
export async function offer(
  trx: Trx,
  caller: Caller,
  { storeId, categoryId }: Pick<Content, "storeId" | "categoryId">,
): Promise<Status> {
  if (storeId === null) return "draft";
  const store = await lockStore(trx, caller, storeId);
  await requireCategory(trx, caller, storeId, categoryId);
  if (store.organizationId === caller.organizationId) return "published";
  if (!store.allowSubmissions) throw conflict("The store takes no artifacts of other organizations.");
  return store.requireApproval ? "pending" : "published";
}

/**
 * The status of an artifact that its organization changes: another store sees it as new, and what a store of others has
 * approved, or refused, comes before its organization once more where it is no longer the same.
 *
 * @throws ApiError 404 where what is named anew is not there; 409 where it has orders or reviews and would leave its store, or
 * the new store takes nothing of other organizations
 */
export async function offerAgain(
  trx: Trx,
  caller: Caller,
  before: ArtifactRow,
  after: Content,
): Promise<Status> {
  if (after.storeId !== before.offeredIn) {
    const status = await offer(trx, caller, after);
    if (await isKnownInStore(trx, before.id))
      throw conflict("An artifact that has orders or reviews stays in its store.");
    return status;
  }
  if (after.storeId === null) return "draft";
  if (after.categoryId !== before.categoryId)
    await requireCategory(trx, caller, after.storeId, after.categoryId);
  const isSame = KNOWN.every((name) => after[name] === before[name]);
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

/** The store as it is until the transaction ends. @throws ApiError 404 where the caller does not see it */
async function lockStore(trx: Trx, caller: Caller, id: string): Promise<Row<"stores">> {
  const store = await visibleStores(trx, caller)
    .selectAll()
    .where("id", "=", id)
    .forShare()
    .executeTakeFirst();
  if (!store) throw notFound("store");
  return store;
}

/** @throws ApiError 404 where the caller sees no such category of the store */
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

/** An order or a review locks its artifact while it is made. */
async function isKnownInStore(trx: Trx, artifactId: string): Promise<boolean> {
  for (const table of ["storeOrders", "storeReviews"] as const) {
    const query = trx.selectFrom(table).select("id").where("artifactId", "=", artifactId).limit(1);
    if ((await query.executeTakeFirst()) !== undefined) return true;
  }
  return false;
}
