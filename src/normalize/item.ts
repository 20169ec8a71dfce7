import type { VerifiedDelivery } from "../event/received.ts";
import type { Body } from "./body/bodies.ts";
import type { JsonText } from "./body/payload-slice.ts";
import type { Fault } from "./fault.ts";

/** A delivery of more items is refused as a whole. */
export const MAX_ITEMS = 1000;

/** The `data` of an event, as its format brings it. `body`: the delivery's whole body, of any format. */
export type EventData =
  | { readonly kind: "none" }
  | { readonly kind: "body" }
  | { readonly kind: "json"; readonly json: JsonText }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "bytes"; readonly base64: string };

/** An event that fits CloudEvents 1.0.2, its attributes in their canonical string representation (section 3, type system). */
export interface CloudEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** All others that are set: the optional ones of the specification, and extensions. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly data: EventData;
}

/** One thing of a delivery that becomes events on its own. */
export interface Item {
  /** Its position in the delivery, from 0. */
  readonly index: number;
  /** The value that paths see; of a CloudEvent its data. */
  readonly value: unknown;
  /** Where it stands as JSON, from which payloads are cut. */
  readonly json: JsonText | undefined;
  /** True where the delivery was not split: the item is the whole body, which is published as it came. */
  readonly isBody: boolean;
  /** Where the sender speaks of events itself. */
  readonly event?: CloudEvent;
}

/** An item that could not even be read (a broken line). */
export interface BrokenItem {
  readonly index: number;
  readonly fault: Fault;
  /** The line, or the event of a batch. */
  readonly text: string;
}

export type Split =
  | { readonly kind: "items"; readonly items: readonly (Item | BrokenItem)[] }
  | { readonly kind: "fault"; readonly fault: Fault }
  | { readonly kind: "tooMany"; readonly limit: number };

/** A delivery that was read. */
export interface DeliveryItems {
  readonly body: Body;
  readonly split: Split;
}

/** All that the paths of one item may read. */
export interface ItemContext {
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly item: Item;
}
