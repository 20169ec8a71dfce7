import { randomBytes } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { Trx } from "../../../data/database.ts";
import type { Caller } from "../../../http/context.ts";
import { ApiError, conflict, notFound } from "../../../http/problem.ts";
import { formatTimestamp } from "../../../lib/clock.ts";
import { encodeBase32, isId } from "../../../lib/ids.ts";
import { lockArtifact, requirePublished } from "../store-scope.ts";
import { addDecimals, percentOf } from "./decimal.ts";
import type { OrderRow, OrderStatus, PaymentInput } from "./schema.ts";

/** The life of an order: `pending`, then `paid`, or one of the ends. */
interface Step {
  readonly to: OrderStatus;
  readonly from: readonly OrderStatus[];
  /** The buyer's organization can take it too; default: the store's alone. */
  readonly byBuyer?: true;
}

export const STEPS = {
  pay: { to: "paid", from: ["pending"] },
  refund: { to: "refunded", from: ["paid"] },
  expire: { to: "expired", from: ["pending", "paid"] },
  cancel: { to: "canceled", from: ["pending", "paid"], byBuyer: true },
} as const satisfies Readonly<Record<string, Step>>;

/** @throws ApiError 403 for the buyer's organization, which can cancel it alone; 409 where the order is in another status */
export function requireStep({ organizationId }: Caller, row: OrderRow, name: keyof typeof STEPS): void {
  const { from, byBuyer }: Step = STEPS[name];
  if (!byBuyer && organizationId !== row.storeOrganizationId)
    throw new ApiError("permission_denied", "Only the organization of its store may do this with an order.");
  if (!from.includes(row.status)) throw conflict(`The order is ${row.status}.`);
}

/**
 * The plan's price and the store's commission at this moment. Artifact, plan and store stay so until the order is there.
 *
 * @throws ApiError 404 where the caller sees no such artifact, or it has no such plan; 409 where it is not published
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

/** A payment adds a license key, and an end where the plan has an interval. @throws ApiError 409 for another total */
export function paymentOf(
  row: OrderRow,
  { transactionId, paymentMethod, total }: PaymentInput,
  nowMs: number,
) {
  if (total !== undefined && !isSameAmount(total, row.total))
    throw conflict(`The order's total is ${row.total}.`);
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

/** 160 random bits in groups: `7K2M9QXA-…`. It is shown again whenever the buyer asks, hence kept as it is. */
const createLicenseKey = (random: Buffer = randomBytes(KEY_BYTES)): string =>
  (encodeBase32(random).toUpperCase().match(GROUP) ?? []).join("-");

const MONTHS = { month: 1, year: 12 } as const;

/** The same day and time of that month (UTC), or the month's last day where it has no such day. */
function endOf(interval: keyof typeof MONTHS, nowMs: number): number {
  const end = new Date(nowMs);
  const day = end.getUTCDate();
  end.setUTCMonth(end.getUTCMonth() + MONTHS[interval]);
  if (end.getUTCDate() !== day) end.setUTCDate(0);
  return end.getTime();
}
