import type { Schemas } from "../../api/client.ts";
import { Badge } from "../../kit/layout/page.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";

type AgentSubscription = Schemas["AgentSubscription"];

const specOf = (appId: string): ResourceSpec<AgentSubscription> => ({
  title: "Agents",
  one: "subscription",
  many: "agent subscriptions",
  lead: "AI agents that get events of this app by webhook. An agent makes its subscription itself and extends it regularly.",
  path: `/apps/${appId}/agent-subscriptions`,
  noun: "apps",
  columns: [
    { title: "Events", width: "minmax(0, 2fr)", cell: ({ name }) => name },
    { title: "Callback", width: "minmax(0, 2fr)", cell: ({ callbackOrigin }) => callbackOrigin },
    {
      title: "State",
      width: "6rem",
      cell: ({ state }) => <Badge tone={state === "active" ? "ok" : "bad"}>{state}</Badge>,
    },
    {
      title: "Expires",
      width: "8rem",
      priority: 2,
      cell: ({ expiresAt }) => <Time at={expiresAt} as="ago" />,
    },
  ],
  titleOf: ({ name }) => name,
  facts: (row) => ({
    Id: <Copyable text={row.id} what="subscription id" />,
    "Id for the agent": <Copyable text={row.agentId} what="id for the agent" />,
    Events: row.name,
    Callback: row.callbackOrigin,
    "API key": row.keyId === null ? "none" : <Copyable text={row.keyId} what="key id" />,
    Account: row.accountId,
    "Last error": row.lastError?.message ?? "none",
    "Dead letters": formatCount(row.deadLetters),
    Expires: <Time at={row.expiresAt} as="full" />,
    Created: <Time at={row.createdAt} as="full" />,
  }),
  more: ({ filter }) =>
    filter !== null && <Payload content={JSON.stringify(filter)} label="filter" fileName="filter.json" />,
  empty: "Open an event type to agents in the catalog, and connect an agent to /mcp.",
  remove: {
    verb: "End",
    consequence: () => (
      <p>The agent gets no more events. It may subscribe again, unless you revoke its key.</p>
    ),
  },
});

/** Page of the webhook subscriptions of agents to an app. */
export default function Agents({ appId }: { readonly appId: string }) {
  return <ResourceView key={appId} spec={specOf(appId)} />;
}
