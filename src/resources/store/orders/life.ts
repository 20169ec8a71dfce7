import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Trx } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError, conflict, notFound } from "../../../http/errors.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { encodeBase32, isId } from "../../../lib/ids.ts";
import { lockArtifact, requirePublished } from "../store-scope.ts";
import { addDecimals, percentOf } from "./decimal.ts";
import type { OrderRow, OrderStatus, PaymentInput } from "./schema.ts";

/** A status change of an order. Orders start as `pending`. */
interface Step {
  readonly to: OrderStatus;
  readonly from: readonly OrderStatus[];
  /** Whether the buyer's organization may also make this change. The store's organization always may. */
  readonly byBuyer?: true;
}

export const STEPS = {
  pay: { to: "paid", from: ["pending"] },
  refund: { to: "refunded", from: ["paid"] },
  expire: { to: "expired", from: ["pending", "paid"] },
  cancel: { to: "canceled", from: ["pending", "paid"], byBuyer: true },
} as const satisfies Readonly<Record<string, Step>>;

/**
 * Checks that the caller may change the status.
 * @throws ApiError 403 if the buyer does anything but cancel; 409 if the current status does not allow the change
 */
export function requireStep({ organizationId }: Caller, row: OrderRow, name: keyof typeof STEPS): void {
  const { from, byBuyer }: Step = STEPS[name];
  if (!byBuyer && organizationId !== row.storeOrganizationId)
    throw new ApiError(
      "permission_denied",
      "Only the store's organization may mark an order as paid, refunded or expired.",
    );
  if (!from.includes(row.status))
    throw conflict(`The order is ${row.status}, but must be ${from.join(" or ")}.`);
}

/**
 * Computes the price, commission and total of a new order. Locks the artifact, plan and store until the transaction
 * ends.
 * @throws ApiError 404 if the artifact is not visible or has no such plan; 409 if it is not published
 */
export async function termsOf(
  trx: Trx,
  caller: Caller,
  { artifactId, pricingPlanId, tax }: Pick<OrderRow, "artifactId" | "pricingPlanId" | "tax">,
) {
  const artifact = await lockArtifact(trx, caller, artifactId);
  const plan = await trx
    .selectFrom("pricingPlans")
    .selectAll()
    .where("id", "=", isId("plan", pricingPlanId) ? pricingPlanId : "")
    .where("artifactId", "=", artifactId)
    .forShare()
    .executeTakeFirst();
  if (!plan) throw notFound("pricing plan");
  const store = await trx
    .selectFrom("stores")
    .select(["id", "organizationId", "commissionRate"])
    .where("id", "=", requirePublished(artifact))
    .forShare()
    .executeTakeFirstOrThrow();
  const { price, currency, interval } = plan;
  return {
    storeId: store.id,
    storeOrganizationId: store.organizationId,
    currency,
    interval,
    subtotal: price,
    total: addDecimals(price, tax),
    commission: percentOf(price, store.commissionRate),
  };
}

/**
 * Returns the fields that change when an order is paid, including a new license key and, for plans with an interval, the expiry.
 * @throws ApiError 409 if the paid amount differs from the order's total
 */
export function paymentOf(
  row: OrderRow,
  { transactionId, paymentMethod, total }: PaymentInput,
  nowMs: number,
) {
  if (total !== undefined && !isSameAmount(total, row.total))
    throw conflict(`The paid total is ${total}, but the order's total is ${row.total}.`);
  return {
    transactionId,
    paymentMethod: paymentMethod ?? row.paymentMethod,
    licenseKey: createLicenseKey(),
    paidAt: formatTimestamp(nowMs),
    expiresAt: row.interval && formatTimestamp(endOf(row.interval, nowMs)),
  };
}

const isSameAmount = (a: string, b: string): boolean =>
  isDeepStrictEqual(addDecimals(a, "0.0000"), addDecimals(b, "0.0000"));

const KEY_BYTES = 20;
const GROUP = /.{8}/g;

/** Formats 160 random bits as a license key such as `7K2M9QXA-…`. Keys are stored in plain text, because buyers can read them again. */
const createLicenseKey = (random: Buffer = randomBytes(KEY_BYTES)): string =>
  (encodeBase32(random).toUpperCase().match(GROUP) ?? []).join("-");

const MONTHS = { month: 1, year: 12 } as const;

/** Adds one month or year, in UTC. If the resulting month is too short for the day, returns its last day. */
function endOf(interval: keyof typeof MONTHS, nowMs: number): number {
  const end = new Date(nowMs);
  const day = end.getUTCDate();
  end.setUTCMonth(end.getUTCMonth() + MONTHS[interval]);
  if (end.getUTCDate() !== day) end.setUTCDate(0);
  return end.getTime();
}
