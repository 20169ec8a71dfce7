import type { VerifiedDelivery } from "../event/received.ts";
import type { Body } from "./bodies.ts";
import type { CloudEvent } from "./cloudevent.ts";
import type { Fault } from "./fault.ts";
import type { JsonText } from "./payload-slice.ts";

/** A delivery of more items is refused as a whole. */
export const MAX_ITEMS = 1000;

/** One thing of a delivery that becomes events on its own. */
export interface Item {
  /** Its position in the delivery, from 0. */
  readonly index: number;
  /** What paths see of it; of a CloudEvent its data. */
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
