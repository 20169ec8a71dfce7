import { recordAudit } from "../../../data/accounts/audit.ts";
import type { Trx } from "../../../data/database.ts";
import type { StoreOrderRow } from "../../../data/store-tables.ts";
import type { Caller } from "../../../http/context.ts";
import type { Listed } from "../../../http/page.ts";
import { ApiError, conflict, notFound } from "../../../http/problem.ts";
import { changedFields } from "../../../lib/changed-fields.ts";
import { addDecimals, percentOf } from "../../../lib/decimal.ts";
import { createId, isId } from "../../../lib/ids.ts";
import { listPage, mapPage } from "../../kit/list-page.ts";
import { applyPatch } from "../../kit/merge.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { visibleArtifacts, visibleOrders } from "../store-scope.ts";
import { type Order, type OrderInput, type OrdersQuery, orderContent, renderOrder } from "./schema.ts";

/** @throws ApiError 404 where neither the buyer nor the store is of the caller's organization */
export async function getOrder({ db }: RowDeps, caller: Caller, id: string): Promise<Order> {
  const row = await visibleOrders(db, caller).selectAll().where("id", "=", id).executeTakeFirst();
  if (!row) throw notFound("order");
  return renderOrder(row, caller.organizationId);
}

export async function listOrders(
  { db }: RowDeps,
  caller: Caller,
  { storeId, artifactId, status, ...page }: OrdersQuery,
): Promise<Listed<Order>> {
  let all = visibleOrders(db, caller);
  if (storeId !== undefined) all = all.where("storeId", "=", storeId);
  if (artifactId !== undefined) all = all.where("artifactId", "=", artifactId);
  if (status !== undefined) all = all.where("status", "=", status);
  return mapPage(await listPage(all.selectAll(), page), (row) => renderOrder(row, caller.organizationId));
}

/**
 * Orders an artifact at what its plan costs and its store takes at this moment.
 *
 * @throws ApiError 404 where the caller sees no such artifact, or it has no such plan; 409 where it is not published
 */
export async function createOrder(
  { db, clock }: RowDeps,
  caller: Caller,
  { artifactId, pricingPlanId, paymentMethod, tax }: OrderInput,
): Promise<Order> {
  return db.transaction().execute(async (trx) => {
    const artifact = await visibleArtifacts(trx, caller)
      .select(["id", "status", "offeredIn"])
      .where("id", "=", isId("art", artifactId) ? artifactId : "")
      .forShare()
      .executeTakeFirst();
    if (!artifact) throw notFound("artifact");
    const plan = await trx
      .selectFrom("pricingPlans")
      .selectAll()
      .where("id", "=", isId("plan", pricingPlanId) ? pricingPlanId : "")
      .where("artifactId", "=", artifactId)
      .forShare()
      .executeTakeFirst();
    if (!plan) throw notFound("pricing plan");
    if (artifact.status !== "published" || artifact.offeredIn === null)
      throw conflict("The artifact is not published.");
    const store = await trx
      .selectFrom("stores")
      .select(["id", "organizationId", "commissionRate"])
      .where("id", "=", artifact.offeredIn)
      .forShare()
      .executeTakeFirstOrThrow();
    const nowMs = clock();
    const id = createId("ord", nowMs);
    const row = await trx
      .insertInto("storeOrders")
      .values({
        ...{ id, orderNumber: orderNumberOf(id), artifactId, pricingPlanId, storeId: store.id },
        ...{ organizationId: caller.organizationId, buyerId: caller.accountId },
        ...{ storeOrganizationId: store.organizationId, status: "pending" },
        ...{ paymentMethod, currency: plan.currency, interval: plan.interval },
        ...{ subtotal: plan.price, tax, total: addDecimals(plan.price, tax) },
        commission: percentOf(plan.price, store.commissionRate),
        ...{ transactionId: null, licenseKey: null, paidAt: null, expiresAt: null },
        ...{ createdAt: new Date(nowMs), updatedAt: new Date(nowMs) },
      })
      .returningAll()
      .executeTakeFirstOrThrow();
    await recordAudit(trx, caller, { action: "create", entity: "order", id }, nowMs);
    return renderOrder(row, caller.organizationId);
  });
}

/** @throws ApiError 400, 404, 403 for the buyer's organization, 409 where it is not pending */
export async function updateOrder(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  patch: object,
): Promise<Order> {
  return db.transaction().execute(async (trx) => {
    const row = await lockOrder(trx, caller, id);
    requireSeller(caller, row);
    const before = { paymentMethod: row.paymentMethod, tax: row.tax };
    const content = applyPatch(orderContent, before, patch);
    if (row.status !== "pending") throw conflict(`The order is ${row.status}.`);
    const nowMs = clock();
    const updated = await trx
      .updateTable("storeOrders")
      .set({ ...content, total: addDecimals(row.subtotal, content.tax), updatedAt: new Date(nowMs) })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    const fields = changedFields(before, content);
    await recordAudit(trx, caller, { action: "update", entity: "order", id, fields }, nowMs);
    return renderOrder(updated, caller.organizationId);
  });
}

/** @throws ApiError 404, 403 for the store's organization, 409 where it was ever paid */
export async function deleteOrder({ db, clock }: RowDeps, caller: Caller, id: string): Promise<void> {
  await db.transaction().execute(async (trx) => {
    const row = await lockOrder(trx, caller, id);
    if (row.organizationId !== caller.organizationId)
      throw new ApiError("permission_denied", "Only the buyer's organization deletes an order.");
    if (row.paidAt !== null) throw conflict("An order that was paid is kept.");
    await trx.deleteFrom("storeOrders").where("id", "=", id).execute();
    await recordAudit(trx, caller, { action: "delete", entity: "order", id }, clock());
  });
}

/** The order, which nobody else changes until the transaction ends. @throws ApiError 404 */
export async function lockOrder(trx: Trx, caller: Caller, id: string): Promise<StoreOrderRow> {
  const row = await visibleOrders(trx, caller)
    .selectAll()
    .where("id", "=", id)
    .forUpdate()
    .executeTakeFirst();
  if (!row) throw notFound("order");
  return row;
}

/** @throws ApiError 403 for the buyer's organization, unless it is the store's as well */
export function requireSeller({ organizationId }: Caller, { storeOrganizationId }: StoreOrderRow): void {
  if (organizationId === storeOrganizationId) return;
  throw new ApiError("permission_denied", "Only the organization of its store may do this with an order.");
}

/** Unique as the id is, and tells no more: `01JC9X2K4V-8M3N5P7Q9R1S0`. */
function orderNumberOf(id: string): string {
  const text = id.slice(id.indexOf("_") + 1).toUpperCase();
  return `${text.slice(0, 10)}-${text.slice(10)}`;
}
