/** Messaging attributes of the OpenTelemetry semantic conventions 1.45, in which they are still in development. */
export const MESSAGING = { "messaging.system": "inlet" };

/** Topic names contain ids of customers, so spans are named after their common form. */
export const TOPIC_TEMPLATE = "events.{organization}.apps.app.event_received.{app}.{channel}.{type}";
