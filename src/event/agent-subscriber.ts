/** Value of `webhook-id`: the id of the event, which the clients of 2026 compare with `eventId`, or an id of the message (SEP-3415). */
export const AGENT_MESSAGE_IDS = ["event", "message"] as const;
export type AgentMessageId = (typeof AGENT_MESSAGE_IDS)[number];

/** Subscription of an agent, whose events Inlet sends to a callback URL (SEP-3415, webhook delivery). */
export interface AgentSubscriber {
  /** Name of the event type, as the agent knows it. */
  readonly name: string;
  readonly arguments: Readonly<Record<string, unknown>>;
  readonly url: string;
  /** API key that made the subscription. `null` if an account without a key made it. */
  readonly keyId: string | null;
  readonly accountId: string;
  /** Position in the topic at which the subscription starts. `appended` is `null` if the position's number is unknown. */
  readonly start: { readonly after: string; readonly appended: number | null };
}

/** Callback of an agent's subscription, with everything that is needed to send messages to it. */
export interface AgentCallback extends AgentSubscriber {
  /** Id of the subscription, which the agent receives. */
  readonly agentId: string;
  /** Organization and API key, or account, of the caller. */
  readonly principal: string;
  readonly secrets: AgentSecrets;
}

export interface AgentSecrets {
  /** Standard Webhooks secret, `whsec_` and base64. */
  readonly current: string;
  /** Secret before the last refresh. Messages are signed with both until `untilMs`, in ms since 1970. */
  readonly previous?: { readonly secret: string; readonly untilMs: number };
}
