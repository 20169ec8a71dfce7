import type { VerifiedDelivery } from "../event/received.ts";
import type { Body } from "./body/bodies.ts";
import type { JsonText } from "./body/payload-slice.ts";
import type { Fault } from "./fault.ts";

/** Maximum number of items per delivery. A delivery with more is rejected as a whole. */
export const MAX_ITEMS = 1000;

/** The `data` of a sender's event. `body` means the whole body of the delivery, in any format. */
export type EventData =
  | { readonly kind: "none" }
  | { readonly kind: "body" }
  | { readonly kind: "json"; readonly json: JsonText }
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "bytes"; readonly base64: string };

/** A valid CloudEvents 1.0.2 event, with attributes in their canonical string representation (section 3, type system). */
export interface CloudEvent {
  readonly id: string;
  readonly source: string;
  readonly type: string;
  /** Optional attributes and extensions that are set. */
  readonly attributes: ReadonlyMap<string, string>;
  readonly data: EventData;
}

/** A part of a delivery that becomes events independently of the others. */
export interface Item {
  /** Its position in the delivery, from 0. */
  readonly index: number;
  /** The value that paths read. For a CloudEvent, it is the event's data. */
  readonly value: unknown;
  /** The item's JSON text, from which payloads are cut. */
  readonly json: JsonText | undefined;
  /** Whether the delivery was not split. The item is then the whole body, which is published as received. */
  readonly isBody: boolean;
  /** The sender's own event, if the delivery contains CloudEvents. */
  readonly event?: CloudEvent;
}

/** An item that could not be parsed, such as an invalid line of NDJSON. */
export interface BrokenItem {
  readonly index: number;
  readonly fault: Fault;
  /** Text of the line, or of the event in a batch. */
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

/** Data that the paths of one item can read. */
export interface ItemContext {
  readonly delivery: VerifiedDelivery;
  readonly body: Body;
  readonly item: Item;
}
