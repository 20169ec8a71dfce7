import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge, Page } from "../../kit/layout/page.tsx";
import { useFilters } from "../../kit/list/filters.tsx";
import { PagedTable } from "../../kit/list/loaded-table.tsx";
import type { Column } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { SUBSCRIPTION_TONES } from "../../kit/text/tones.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { SubscriptionDetail } from "./detail.tsx";
import { Subscribe } from "./subscribe.tsx";

type Subscription = Schemas["Subscription"];

const COLUMNS: readonly Column<Subscription>[] = [
  {
    title: "Events",
    cell: ({ eventUid }) => <UntrustedText>{eventUid}</UntrustedText>,
    width: "minmax(0, 2fr)",
  },
  {
    title: "State",
    cell: ({ state }) => <Badge tone={SUBSCRIPTION_TONES[state]}>{state}</Badge>,
    width: "5.5rem",
  },
  {
    title: "Read by",
    cell: ({ handler }) =>
      handler ? <UntrustedText>{handler.url}</UntrustedText> : <span class="faint">readers</span>,
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

export default function Subscriptions({ appId }: { readonly appId: string }) {
  const filters = useFilters(["subscription"]);
  const [isSubscribing, setSubscribing] = useState(false);
  const pages = usePages<Subscription>(
    (page, signal) => api.list("/apps/{appId}/subscriptions", { path: { appId }, query: page, signal }),
    [appId],
  );
  const open = filters.values.subscription;
  const subscribe = hasPermission("apps.write") && (
    <Button look="primary" onClick={() => setSubscribing(true)}>
      Subscribe
    </Button>
  );
  return (
    <Page
      title="Subscriptions"
      lead="A subscription delivers events to a handler or to readers. Each one keeps its own position on its topics."
      actions={subscribe}
    >
      <div class="split">
        <div class="stack">
          <PagedTable
            label="Subscriptions"
            columns={COLUMNS}
            pages={pages}
            keyOf={({ id }) => id}
            onOpen={({ id }) => filters.set({ subscription: id })}
            openKey={open}
            of="subscriptions"
            empty={
              <Empty title="No subscriptions yet">
                <p>
                  Subscribe with an address to have each event sent there. Without one, you read events with
                  any Redis client or the library.
                </p>
              </Empty>
            }
          />
        </div>
        {open !== undefined && (
          <SubscriptionDetail
            key={open}
            appId={appId}
            subscriptionId={open}
            onClose={() => filters.set({})}
            onChanged={pages.reload}
          />
        )}
      </div>
      {isSubscribing && (
        <Subscribe
          appId={appId}
          onClose={() => setSubscribing(false)}
          onMade={(id) => {
            pages.reload();
            filters.set({ subscription: id });
          }}
        />
      )}
    </Page>
  );
}
