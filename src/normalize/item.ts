import type { VerifiedDelivery } from "../event/received.ts";
import type { Body } from "./body/bodies.ts";
import type { JsonText } from "./body/payload-slice.ts";
import type { Fault } from "./fault.ts";

/** Maximum number of items in a delivery. A delivery with more items is rejected as a whole. */
export const MAX_ITEMS = 1000;

/** Data of a sender's CloudEvent. `body` means that the whole body of the request is the data, in any format. */
export type EventData =
  | { readonly kind: "none" }
  | { readonly kind: "body" }
  | { readonly kind: "json"; readonly json: JsonText }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "bytes"; readonly base64: string };

/** A valid CloudEvents 1.0.2 event. Attributes are in their canonical string representation (section 3, type system). */
export interface CloudEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** Optional attributes and extensions that the event sets. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly data: EventData;
}

/** One part of a delivery, such as an element of a list. Each item becomes events independently of the other items. */
export interface Item {
  readonly index: number;
  /** The value on which paths are evaluated. For a CloudEvent, this value is the event's data. */
  readonly value: unknown;
  readonly json: JsonText | undefined;
  /** Whether the item is the whole body, which is then published as received. */
  readonly isBody: boolean;
  readonly event?: CloudEvent;
}

export interface BrokenItem {
  readonly index: number;
  readonly fault: Fault;
  /** The text that could not be parsed: a line of NDJSON, or one event of a batch. */
  readonly text: string;
}

export type Split =
  | { readonly kind: "items"; readonly items: readonly (Item | BrokenItem)[] }
  | { readonly kind: "fault"; readonly fault: Fault }
  | { readonly kind: "tooMany"; readonly limit: number };

export interface DeliveryItems {
  readonly body: Body;
  readonly split: Split;
}

export interface ItemContext {
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly item: Item;
}
