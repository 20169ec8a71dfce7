import type { ColumnType, Generated, Selectable } from "kysely";
import type { Timestamp, Timestamps } from "./columns.ts";

export interface StoresTable extends Timestamps {
  id: string;
  organizationId: string;
  name: string;
  description: string | null;
  logo: string | null;
  banner: string | null;
  privacyPolicyUrl: string | null;
  termsUrl: string | null;
  allowSubmissions: boolean;
  isPublic: boolean;
  requireApproval: boolean;
  /** Percent, as a decimal number with four decimals at most. */
  commissionRate: ColumnType<string, number, number>;
}

/** In no store; waiting for the store's organization; to be had; refused or taken down by it. */
export type ArtifactStatus = "draft" | "pending" | "published" | "rejected";

export interface ArtifactsTable extends Timestamps {
  id: string;
  organizationId: string;
  kind: "blueprint" | "agent" | "collection" | "flow" | "form";
  title: string;
  description: string | null;
  /** Of an artifact of kind `blueprint`; null where that was deleted. */
  blueprintId: string | null;
  /** The store; null: none. */
  offeredIn: string | null;
  /** A category of that store. */
  categoryId: string | null;
  status: Generated<ArtifactStatus>;
}

export type BillingInterval = "month" | "year";
export type OrderStatus = "pending" | "paid" | "refunded" | "expired" | "canceled";

/** Amounts are decimal numbers as text. */
export interface StoreOrdersTable extends Timestamps {
  id: string;
  /** The buyer's. */
  organizationId: string;
  storeOrganizationId: string;
  orderNumber: string;
  artifactId: string;
  storeId: string;
  pricingPlanId: string;
  /** An account, which need not be there any more. */
  buyerId: string;
  transactionId: string | null;
  /** Made with the payment. */
  licenseKey: string | null;
  paymentMethod: string | null;
  currency: string;
  /** As it was ordered. */
  interval: BillingInterval | null;
  subtotal: string;
  tax: string;
  total: string;
  commission: string;
  status: OrderStatus;
  paidAt: Timestamp | null;
  /** When what was paid for ends; null: it does not. */
  expiresAt: Timestamp | null;
}

export interface StoreReviewsTable extends Timestamps {
  id: string;
  /** The reviewer's. */
  organizationId: string;
  artifactId: string;
  storeId: string;
  /** An account, which need not be there any more. */
  reviewerId: string;
  title: string | null;
  content: string | null;
  rating: number;
}

export type StoreRow = Selectable<StoresTable>;
export type ArtifactRow = Selectable<ArtifactsTable>;
export type StoreOrderRow = Selectable<StoreOrdersTable>;
export type StoreReviewRow = Selectable<StoreReviewsTable>;
