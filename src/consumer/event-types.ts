import type { ConsumedEvent } from "../event/cloud-event.ts";

/**
 * Data by event type, as `inlet types` writes it. Pass such an interface to `createConsumer`, and checking `event.type` narrows
 * `event.data`.
 *
 * The key `*` tells the interface apart from the type of `data`. No event has this type.
 *
 * @example
 * ```ts
 * interface Events extends EventTypes {
 *   "order.created": { id: string };
 *   "order.deleted": { id: string; reason: string };
 * }
 * const consumer = createConsumer<Events>({ redis, subscription });
 * await consumer.run((event) => {
 *   if (event.type === "order.deleted") console.log(event.data?.reason);
 * });
 * ```
 */
export interface EventTypes {
  readonly "*": unknown;
}

/**
 * Event that a consumer delivers.
 *
 * @typeParam T data by event type (`EventTypes`), or else the type of `data` of all events. It is not checked at run time.
 */
export type EventOf<T = unknown> = [T] extends [EventTypes] ? EventOfTypes<T, Named<T>> : ConsumedEvent<T>;

type Named<T> = Exclude<keyof T & string, "*">;

type EventOfTypes<T, Types extends keyof T> = [Types] extends [never]
  ? ConsumedEvent
  : { [Type in Types]: ConsumedEvent<T[Type]> & { readonly type: Type } }[Types];
