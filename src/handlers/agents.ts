import type { EventCursors } from "../bus/topics/event-cursors.ts";
import type { TopicPosition, TopicReader } from "../bus/topics/read-after.ts";
import { operatorOf } from "../data/accounts/audit-entry.ts";
import type { Database } from "../data/database.ts";
import { type AgentEnd, deleteAgentSubscription } from "../data/subscriptions/agent-subscriptions.ts";
import type { HandledSubscription } from "../data/subscriptions/handlers.ts";
import {
  type AgentControl,
  createAgentControlRequest,
  createAgentEventRequest,
} from "../event/agent-request.ts";
import type { AgentCallback, AgentMessageId } from "../event/agent-subscriber.ts";
import type { DeliveredEvent, HandlerRequest } from "../event/handler-request.ts";
import type { Clock } from "../lib/clock.ts";
import { createId } from "../lib/ids.ts";
import type { Log } from "../log.ts";
import type { Outbound } from "../net/outbound.ts";
import { createGapWatch, type GapWatch } from "./gap-watch.ts";

export interface AgentsDeps {
  readonly db: Database["db"];
  readonly cursors: Pick<EventCursors, "seal">;
  readonly reader: Pick<TopicReader, "findRemoved">;
  readonly outbound: Pick<Outbound, "request">;
  readonly clock: Clock;
  readonly log: Log;
  /** Value of the header `webhook-id` of events. */
  readonly messageId: AgentMessageId;
  /** Public base URL of the API, such as `https://inlet.example/v1`. */
  readonly baseUrl: string;
  /** Called after each subscription that has ended. */
  readonly onEnded: (reason: EndReason) => void;
}

export type EndReason = AgentEnd | "gone";

export type CreateAgentEvent = (
  subscription: Pick<HandledSubscription, "id" | "appId">,
  agent: AgentCallback,
  event: DeliveredEvent,
) => HandlerRequest;

/** Messages to the callback URLs of agents, and the end of their subscriptions. Disposal waits for messages in flight. */
export type Agents = ReturnType<typeof createAgents>;

const CONTROL_LIMITS = { totalTimeoutMs: 10_000, maxBytes: 64 * 1024, maxRedirects: 0 } as const;

/** Reasons of which an agent is told. It knows when its time is over, and has itself responded 410 Gone. */
const TERMINATED = {
  forbidden: { code: -32012, message: "The subscription's caller no longer has access." },
  closed: {
    code: -32011,
    message: "The event type is no longer open to agents.",
    data: { kind: "event" },
  },
} as const;

export function createAgents(deps: AgentsDeps) {
  const { db, cursors, reader, outbound, clock, log, messageId, baseUrl } = deps;
  const stopping = new AbortController();
  const sending = new Set<Promise<void>>();

  const seal = ({ principal, name, arguments: args }: AgentCallback, position: TopicPosition): string =>
    cursors.seal({ principal, name, args }, position);

  /** Sends a message once, in the background. The agent can do without it. */
  function tell(callback: AgentCallback, control: AgentControl): void {
    const atMs = clock();
    const request = createAgentControlRequest(control, callback, { id: createId("ctl", atMs), atMs });
    const sent = outbound
      .request(request, { ...CONTROL_LIMITS, signal: stopping.signal })
      .then(
        () => {},
        (err: unknown) =>
          log.debug(
            { event: "agent.not_told", err, type: control.type },
            "a message to an agent was not sent",
          ),
      )
      .finally(() => sending.delete(sent));
    sending.add(sent);
  }

  /** Sends an agent a message that events up to this position were removed before they were sent. */
  const reportGap = (agent: AgentCallback, position: TopicPosition): void =>
    tell(agent, { type: "gap", cursor: seal(agent, position) });

  const createAgentEvent: CreateAgentEvent = ({ id, appId }, agent, event) => {
    const { topic, entryId } = event;
    const path = `/apps/${appId}/events/${encodeURIComponent(topic)}/${entryId}`;
    const cursor = seal(agent, { after: entryId, appended: undefined });
    return createAgentEventRequest(event, agent, {
      ...{ rowId: id, cursor, messageId, atMs: clock() },
      href: baseUrl + path,
    });
  };

  return {
    createAgentEvent,
    reportGap,
    /** Watches the entries of one subscription, and sends the agent a message if events were removed before they were read. */
    watchGaps: (agent: AgentCallback): GapWatch =>
      createGapWatch(reader, (position) => reportGap(agent, position)),
    /** Ends a subscription. Does nothing if it has ended already, or if it was refreshed after its expiry was noticed. */
    async end(
      { id, organizationId, agent }: Pick<HandledSubscription, "id" | "organizationId" | "agent">,
      reason: EndReason,
    ): Promise<void> {
      const nowMs = clock();
      const selected = { id, ...(reason === "expired" && { expiredAtMs: nowMs }) };
      if (!(await deleteAgentSubscription(db, operatorOf(organizationId), selected, nowMs))) return;
      log.info({ event: "agent.ended", subscription: id, reason }, "the subscription of an agent has ended");
      deps.onEnded(reason);
      if (agent !== undefined && (reason === "forbidden" || reason === "closed"))
        tell(agent, { type: "terminated", error: TERMINATED[reason] });
    },
    async [Symbol.asyncDispose](): Promise<void> {
      stopping.abort();
      await Promise.all(sending);
    },
  };
}
