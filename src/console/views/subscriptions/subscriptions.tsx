import type { Schemas } from "../../api/client.ts";
import { DialogButton } from "../../kit/feedback/buttons.tsx";
import { LastError } from "../../kit/feedback/states.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { hasPermission } from "../../session/session.ts";
import { BACKLOG_COLUMNS, STATE_COLUMN } from "./columns.tsx";
import { factsOf, HowToRead, SubscriptionActions } from "./detail.tsx";
import { Subscribe } from "./subscribe.tsx";

const specOf = (appId: string): ResourceSpec<Schemas["Subscription"]> => ({
  title: "Subscriptions",
  one: "subscription",
  many: "subscriptions",
  lead: "A subscription delivers events to a handler or to readers. Each one keeps its own position on its topics.",
  path: `/apps/${appId}/subscriptions`,
  noun: "apps",
  columns: [
    { title: "Events", cell: ({ eventUid }) => eventUid, width: "minmax(0, 2fr)" },
    STATE_COLUMN,
    {
      title: "Read by",
      cell: ({ handler }) => handler?.url ?? <span class="faint">readers</span>,
      width: "minmax(0, 2fr)",
      priority: 2,
    },
    ...BACKLOG_COLUMNS,
  ],
  pageActions: (onMade) =>
    hasPermission("apps.write") && (
      <DialogButton look="primary" label="Subscribe">
        {(onClose) => <Subscribe appId={appId} onClose={onClose} onMade={onMade} />}
      </DialogButton>
    ),
  empty: (
    <p>
      Subscribe with an address to have each event sent there. Without one, you read events with any Redis
      client or the library.
    </p>
  ),
  openParam: "subscription",
  everyMs: 5_000,
  titleOf: ({ eventUid }) => `Subscription to ${eventUid}`,
  head: ({ lastError, state }) => lastError && <LastError error={lastError} isBad={state === "failing"} />,
  facts: factsOf,
  more: (subscription) => !subscription.handler && <HowToRead subscription={subscription} />,
  actions: (subscription, onChanged) =>
    hasPermission("apps.write") && <SubscriptionActions subscription={subscription} onChanged={onChanged} />,
  remove: {
    consequence: () => (
      <p>This deletes its position and its dead letters. The events stay on their topics.</p>
    ),
  },
});

export default function Subscriptions({ appId }: { readonly appId: string }) {
  return <ResourceView key={appId} spec={specOf(appId)} />;
}
