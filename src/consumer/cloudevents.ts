import { CloudEvent, type CloudEventV1 } from "cloudevents";
import type { ConsumedEvent } from "../event/cloud-event.ts";

/**
 * The event as the class of the package `cloudevents`, which must be installed beside this one.
 *
 * @throws ValidationError of that package where the event is not as it wants it
 */
export const toCloudEvent = <T>(event: ConsumedEvent<T>): CloudEvent<T> =>
  new CloudEvent<T>(event satisfies Partial<CloudEventV1<T>>);
