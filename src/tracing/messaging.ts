import type { ChannelIdentity } from "../event/channel.ts";
import type { FinishedSpan } from "./span.ts";

/** Messaging attributes of the OpenTelemetry semantic conventions 1.45, in which they are still in development. */
export const MESSAGING = { "messaging.system": "inlet" };

/** Identifies the channel of a span. Its address is left out, because it is a credential. */
export const toChannelAttributes = ({
  organizationId,
  appId,
  uid,
  kind,
}: ChannelIdentity): FinishedSpan["attributes"] => ({
  "inlet.organization.id": organizationId,
  "inlet.app.id": appId,
  "inlet.channel.uid": uid,
  "inlet.channel.kind": kind,
});

/** Topic names contain ids of customers, so spans are named after their common form. */
export const TOPIC_TEMPLATE = "events.{organization}.apps.app.event_received.{app}.{channel}.{type}";
