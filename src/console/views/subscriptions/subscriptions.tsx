import type { Schemas } from "../../api/client.ts";
import { DialogButton } from "../../kit/feedback/buttons.tsx";
import { LastError } from "../../kit/feedback/states.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import type { Column } from "../../kit/list/table.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { SUBSCRIPTION_TONES } from "../../kit/text/tones.ts";
import { hasPermission } from "../../session/session.ts";
import { factsOf, HandlerFacts, HowToRead, SubscriptionActions } from "./detail.tsx";
import { Subscribe } from "./subscribe.tsx";

type Subscription = Schemas["Subscription"];

const COLUMNS: readonly Column<Subscription>[] = [
  { title: "Events", cell: ({ eventUid }) => eventUid, width: "minmax(0, 2fr)" },
  {
    title: "State",
    cell: ({ state }) => <Badge tone={SUBSCRIPTION_TONES[state]}>{state}</Badge>,
    width: "5.5rem",
  },
  {
    title: "Read by",
    cell: ({ handler }) => handler?.url ?? <span class="faint">readers</span>,
    width: "minmax(0, 2fr)",
    priority: 2,
  },
  { title: "Lag", cell: ({ lag }) => counted(lag), align: "end", width: "5rem" },
  {
    title: "Behind",
    cell: ({ lagSeconds }) => (!lagSeconds ? "–" : formatDuration(lagSeconds * 1_000)),
    align: "end",
    width: "5rem",
    priority: 2,
  },
  { title: "Pending", cell: ({ pending }) => counted(pending), align: "end", width: "5rem", priority: 3 },
  {
    title: "Dead letters",
    cell: ({ deadLetters }) => counted(deadLetters),
    align: "end",
    width: "6rem",
    priority: 3,
  },
];

const counted = (count: number | null): string => (count === null ? "–" : formatCount(count));

const specOf = (appId: string): ResourceSpec<Subscription> => ({
  title: "Subscriptions",
  one: "subscription",
  many: "subscriptions",
  lead: "A subscription delivers events to a handler or to readers. Each one keeps its own position on its topics.",
  path: `/apps/${appId}/subscriptions`,
  noun: "apps",
  columns: COLUMNS,
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
  more: (subscription) =>
    subscription.handler ? (
      <HandlerFacts handler={subscription.handler} />
    ) : (
      <HowToRead subscription={subscription} />
    ),
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
