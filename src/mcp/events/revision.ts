/**
 * Protocol revisions that this server implements, as of 2026-11-28: SEP-3415 (final), and the extension `io.modelcontextprotocol/events`
 * (beta) for MCP 2026-07-28. Change this file when a revision changes a name or a code.
 */
export const EVENTS_EXTENSION = "io.modelcontextprotocol/events";

/** Key of the id of a stream in `_meta` of its notifications. The id is that of the `events/stream` request (SEP-2575). */
export const SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId";

/** Error codes of JSON-RPC 2.0 (section 5.1) and of SEP-3415. */
export const ERROR_CODES = {
  invalidParams: -32602,
  internal: -32603,
  notFound: -32011,
  forbidden: -32012,
  resourceExhausted: -32013,
  unsupported: -32014,
  callbackEndpoint: -32015,
} as const;

/** An error response of an events method. */
export class EventsError extends Error {
  override readonly name = "EventsError";
  readonly code: number;
  readonly data: Readonly<Record<string, unknown>> | undefined;

  constructor(code: keyof typeof ERROR_CODES, message: string, data?: Readonly<Record<string, unknown>>) {
    super(message);
    this.code = ERROR_CODES[code];
    this.data = data;
  }
}
