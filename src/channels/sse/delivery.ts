import type { FetchedDelivery } from "../source.ts";
import type { Frame } from "./frames.ts";
import type { EventPlace } from "./numbering.ts";
import type { SseSettings } from "./settings.ts";

const CONTENT_TYPES: Readonly<Record<SseSettings["dataFormat"], string>> = {
  json: "application/json",
  text: "text/plain",
  jsonLines: "application/x-ndjson",
};

/** One frame as a delivery: its data is the body, what else it says stands in headers, where `$event` and `$lastEventId` read it. */
export function deliveryOf(
  { data, event }: Frame,
  { deliveryId, lastEventId }: EventPlace,
  dataFormat: SseSettings["dataFormat"],
  arrivedAtMs: number,
): FetchedDelivery {
  const headers = { "content-type": CONTENT_TYPES[dataFormat], event };
  const body = Buffer.from(data);
  return deliveryId === undefined
    ? { headers, body, arrivedAtMs }
    : { headers: { ...headers, "last-event-id": lastEventId }, body, arrivedAtMs, deliveryId };
}
