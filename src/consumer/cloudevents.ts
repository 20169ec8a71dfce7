import { CloudEvent, type CloudEventV1 } from "cloudevents";
import type { ConsumedEvent } from "../event/cloud-event.ts";

/**
 * Converts a consumed event to the `CloudEvent` class of the `cloudevents` package. You must install that package yourself.
 *
 * @param event an event from `run` or `events`
 * @returns a new `CloudEvent` with the same attributes and data
 * @throws ValidationError (of `cloudevents`) if the package considers the event invalid
 * @example
 * ```ts
 * import { toCloudEvent } from "inlet-consumer/cloudevents";
 *
 * await consumer.run((event) => console.log(toCloudEvent(event).toString()));
 * ```
 */
export const toCloudEvent = <T>(event: ConsumedEvent<T>): CloudEvent<T> =>
  new CloudEvent<T>(event satisfies Partial<CloudEventV1<T>>);
