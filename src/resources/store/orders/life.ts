import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { recordAudit } from "../../../data/accounts/audit.ts";
import type { AuditAction } from "../../../data/accounts/audit-entry.ts";
import type { BillingInterval, OrderStatus, StoreOrderRow } from "../../../data/store-tables.ts";
import type { Caller } from "../../../http/context.ts";
import { conflict } from "../../../http/problem.ts";
import { addDecimals } from "../../../lib/decimal.ts";
import { encodeBase32 } from "../../../lib/ids.ts";
import type { RowDeps } from "../../kit/owned-rows.ts";
import { lockOrder, requireSeller } from "./queries.ts";
import { type Order, type PaymentInput, renderOrder } from "./schema.ts";

/** A step in the life of an order: `pending`, then `paid`, or one of the ends. */
interface Step {
  readonly action: AuditAction;
  readonly to: OrderStatus;
  readonly from: readonly OrderStatus[];
  /** The buyer's organization may take it too; default: the store's alone. */
  readonly byBuyer?: true;
}

const STEPS = {
  pay: { action: "pay", to: "paid", from: ["pending"] },
  refund: { action: "refund", to: "refunded", from: ["paid"] },
  expire: { action: "expire", to: "expired", from: ["pending", "paid"] },
  cancel: { action: "cancel", to: "canceled", from: ["pending", "paid"], byBuyer: true },
} as const satisfies Readonly<Record<string, Step>>;

/**
 * The store's organization has been paid: the order gets its license key, and its end where the plan has one.
 *
 * @throws ApiError 404; 403 for the buyer's organization; 409 where the order is not pending, or has another total
 */
export async function payOrder(
  deps: RowDeps,
  caller: Caller,
  id: string,
  { transactionId, paymentMethod, total }: PaymentInput,
): Promise<Order> {
  return take(deps, caller, id, STEPS.pay, (row, nowMs) => {
    if (total !== undefined && !isSameAmount(total, row.total))
      throw conflict(`The order's total is ${row.total}.`);
    return {
      ...{ transactionId, paymentMethod: paymentMethod ?? row.paymentMethod },
      licenseKey: createLicenseKey(),
      paidAt: new Date(nowMs),
      expiresAt: row.interval && endOf(row.interval, nowMs),
    };
  });
}

/** @throws ApiError 404; 403 for the buyer's organization, but that it may cancel; 409 where the order is in another status */
export const endOrder = (
  deps: RowDeps,
  caller: Caller,
  id: string,
  step: "refund" | "expire" | "cancel",
): Promise<Order> => take(deps, caller, id, STEPS[step], () => ({}));

type Payment = Pick<StoreOrderRow, "transactionId" | "paymentMethod" | "licenseKey" | "paidAt" | "expiresAt">;

async function take(
  { db, clock }: RowDeps,
  caller: Caller,
  id: string,
  { action, to, from, byBuyer }: Step,
  contentOf: (row: StoreOrderRow, nowMs: number) => Payment | Record<never, never>,
): Promise<Order> {
  return db.transaction().execute(async (trx) => {
    const before = await lockOrder(trx, caller, id);
    if (!byBuyer) requireSeller(caller, before);
    if (!from.includes(before.status)) throw conflict(`The order is ${before.status}.`);
    const nowMs = clock();
    const row = await trx
      .updateTable("storeOrders")
      .set({ ...contentOf(before, nowMs), status: to, updatedAt: new Date(nowMs) })
      .where("id", "=", id)
      .returningAll()
      .executeTakeFirstOrThrow();
    await recordAudit(trx, caller, { action, entity: "order", id, fields: ["status"] }, nowMs);
    return renderOrder(row, caller.organizationId);
  });
}

const isSameAmount = (a: string, b: string): boolean =>
  isDeepStrictEqual(addDecimals(a, "0.0000"), addDecimals(b, "0.0000"));

const KEY_BYTES = 20;
const GROUP = /.{8}/g;

/** 160 random bits in groups: `7K2M9QXA-…`. It is shown again whenever the buyer asks, hence kept as it is. */
const createLicenseKey = (random: Buffer = randomBytes(KEY_BYTES)): string =>
  (encodeBase32(random).toUpperCase().match(GROUP) ?? []).join("-");

const MONTHS: Readonly<Record<BillingInterval, number>> = { month: 1, year: 12 };

/** The same day and time of that month (UTC), or the month's last day where it has no such day. */
function endOf(interval: BillingInterval, nowMs: number): Date {
  const end = new Date(nowMs);
  const day = end.getUTCDate();
  end.setUTCMonth(end.getUTCMonth() + MONTHS[interval]);
  if (end.getUTCDate() !== day) end.setUTCDate(0);
  return end;
}
