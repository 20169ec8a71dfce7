import type { VerifiedDelivery } from "../event/received.ts";

/** An id that a delivery gives its items: `remembered` is what dedupe goes by. */
export interface OwnId {
  readonly id: string;
  readonly remembered: string;
}

/** An item's position in its delivery, from 0; `isBody` where the delivery was not split. */
interface Place {
  readonly index: number;
  readonly isBody: boolean;
}

export type NameItem = (delivery: VerifiedDelivery, item: Place) => OwnId | undefined;

/** The delivery's id, or what was signed, and the item's place in it. */
export const ofPlace: NameItem = ({ deliveryId, boundTo }, { index }) => {
  const delivery = deliveryId ?? boundTo;
  if (delivery === undefined) return undefined;
  const id = `${delivery}/${index}`;
  return { id, remembered: id };
};

/**
 * Of a frame of an event stream: the delivery's id (`42`, `42/2` for the second event under that last event id) as it is, with
 * the item's place where the frame was split. `42/2` may also be an id that the sender gave, so what is remembered says where
 * the sender's part ends.
 */
export const ofFrame: NameItem = ({ deliveryId, headers }, { index, isBody }) => {
  if (deliveryId === undefined) return undefined;
  const id = isBody ? deliveryId : `${deliveryId}/${index}`;
  return { id, remembered: `${headers["last-event-id"]?.length ?? 0}:${id}` };
};
