import { TEST_EXTENSION } from "../event/cloud-event.ts";
import type { OutgoingEvent } from "../event/event.ts";

/** Marks an event as a test, and removes its identity, so that it is neither deduplicated nor remembered. */
export function toTestEvent({ fields, bytes, ...event }: OutgoingEvent): OutgoingEvent {
  const marked = [...fields, TEST_EXTENSION, "true"];
  return { ...event, identity: "", fields: marked, bytes: bytes + TEST_EXTENSION.length + 4 };
}
