import type { ItemFailure, QuarantineReason } from "../../event/outcome.ts";
import type { VerifiedDelivery } from "../../event/received.ts";

export interface QuarantineItem {
  readonly failure: ItemFailure;
  /**
   * `all`: kept for seven days, refused when the budget is full. `newest`: older ones give way and are
   * counted (what matches no definition, where the channel says `keepLast`).
   */
  readonly keep: "all" | "newest";
}

/** Failed items of one delivery, which is stored once for all of them. */
export interface QuarantineWrite {
  readonly delivery: VerifiedDelivery;
  readonly items: readonly QuarantineItem[];
}

/** One item that could not be published. The same item again is the same record, counted. */
export interface QuarantineRecord {
  readonly id: string;
  readonly channelNumber: number;
  readonly organizationId: string;
  readonly appId: string;
  readonly channelUid: string;
  /** Null: the delivery as a whole. */
  readonly item: number | null;
  readonly reason: QuarantineReason;
  readonly path?: string;
  readonly detail: string;
  readonly definitions: readonly string[];
  readonly count: number;
  readonly firstAtMs: number;
  readonly lastAtMs: number;
}

export interface QuarantinedItem {
  readonly record: QuarantineRecord;
  /** As it arrived, byte for byte. */
  readonly delivery: VerifiedDelivery;
}
