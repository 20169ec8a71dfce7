import type { VerifiedDelivery } from "../event/received.ts";
import type { Body } from "./body/bodies.ts";
import type { JsonText } from "./body/payload-slice.ts";
import type { Fault } from "./fault.ts";

/** Maximum number of items in a delivery. A delivery with more items is rejected as a whole. */
export const MAX_ITEMS = 1000;

/** The data of a sender's CloudEvent. `body` means that the data is the whole body of the delivery, in any format. */
export type EventData =
  | { readonly kind: "none" }
  | { readonly kind: "body" }
  | { readonly kind: "json"; readonly json: JsonText }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "bytes"; readonly base64: string };

/** A valid CloudEvents 1.0.2 event. Its attributes are in their canonical string representation (section 3, type system). */
export interface CloudEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** Values of the optional attributes and extensions that the event sets. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly data: EventData;
}

/** A part of a delivery. It becomes events independently of the other parts. */
export interface Item {
  /** Position of the item in the delivery, starting at 0. */
  readonly index: number;
  /** The value that paths read. For a CloudEvent, it is the data of the event. */
  readonly value: unknown;
  /** JSON text of the item. Payloads are cut out of it. */
  readonly json: JsonText | undefined;
  /** Whether the delivery was not split into items. The item is then the whole body, which is published as received. */
  readonly isBody: boolean;
  /** The CloudEvent that the sender created, if the delivery contains CloudEvents. */
  readonly event?: CloudEvent;
}

/** An item that could not be parsed, such as an invalid line of NDJSON. */
export interface BrokenItem {
  readonly index: number;
  readonly fault: Fault;
  /** The text that could not be parsed: a line of NDJSON, or an event of a batch. */
  readonly text: string;
}

export type Split =
  | { readonly kind: "items"; readonly items: readonly (Item | BrokenItem)[] }
  | { readonly kind: "fault"; readonly fault: Fault }
  | { readonly kind: "tooMany"; readonly limit: number };

/** The parsed body of a delivery, split into items. */
export interface DeliveryItems {
  readonly body: Body;
  readonly split: Split;
}

/** The data that paths can read when they are evaluated on an item. */
export interface ItemContext {
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly item: Item;
}
