import type { AgentCallback, AgentMessageId } from "./agent-subscriber.ts";
import { type DeliveredEvent, type HandlerRequest, messageIdOf, signMessage } from "./handler-request.ts";
import { toOccurrence } from "./occurrence.ts";

/** Maximum size of a request body in bytes (ChatGPT profile of MCP Events). */
export const MAX_AGENT_BODY_BYTES = 256 * 1024;

/** Destination of a message to an agent. */
export type AgentDestination = Pick<AgentCallback, "url" | "agentId" | "secrets">;

/** A message to an agent that is not an event (SEP-3415, webhook delivery). */
export type AgentControl =
  | { readonly type: "verification"; readonly challenge: string }
  /** Events before `cursor` were removed before they were sent. */
  | { readonly type: "gap"; readonly cursor: string }
  | {
      readonly type: "terminated";
      readonly error: { readonly code: number; readonly message: string; readonly data?: object };
    };

/**
 * Builds the request that sends an event to an agent. An event that is too large is replaced by its address.
 *
 * @param options.cursor position after the event
 * @param options.href address of the event in the management API
 */
export function createAgentEventRequest(
  { topic, entryId, fields }: DeliveredEvent,
  callback: AgentDestination & Pick<AgentCallback, "name">,
  options: {
    readonly rowId: string;
    readonly cursor: string;
    readonly href: string;
    readonly messageId: AgentMessageId;
    readonly atMs: number;
  },
): HandlerRequest {
  const { occurrence } = toOccurrence(callback.name, { entryId, fields: toRecord(fields) });
  const { cursor, href } = options;
  const whole = JSON.stringify({ ...occurrence, cursor });
  const data = { eventId: entryId, tooLarge: true, href };
  const { name, timestamp } = occurrence;
  const isTooLarge = Buffer.byteLength(whole) > MAX_AGENT_BODY_BYTES;
  const body = isTooLarge ? JSON.stringify({ eventId: entryId, name, timestamp, data, cursor }) : whole;
  const id = options.messageId === "event" ? entryId : messageIdOf(options.rowId, { topic, entryId });
  return createRequest(id, body, callback, options.atMs);
}

/** @param options.id a new id for each message */
export const createAgentControlRequest = (
  control: AgentControl,
  destination: AgentDestination,
  { id, atMs }: { readonly id: string; readonly atMs: number },
): HandlerRequest => createRequest(`msg_${control.type}_${id}`, JSON.stringify(control), destination, atMs);

function createRequest(
  id: string,
  body: string,
  { url, agentId, secrets: { current, previous } }: AgentDestination,
  atMs: number,
): HandlerRequest {
  const secrets = previous !== undefined && atMs < previous.untilMs ? [current, previous.secret] : [current];
  return {
    method: "POST",
    url,
    headers: {
      "content-type": "application/json",
      "x-mcp-subscription-id": agentId,
      ...signMessage({ id, body, secrets, atMs }),
    },
    body,
  };
}

/** Turns alternating names and values into a record. The record has no prototype, because names come from senders. */
function toRecord(fields: readonly string[]): Readonly<Record<string, string>> {
  const record: Record<string, string> = Object.create(null);
  for (let at = 0; at + 1 < fields.length; at += 2) record[fields[at] ?? ""] = fields[at + 1] ?? "";
  return record;
}
