import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import { Badge, Section } from "../../kit/layout/page.tsx";
import { type Column, Table } from "../../kit/list/table.tsx";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { SUBSCRIPTION_TONES } from "../../kit/text/tones.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";

type Subscription = Schemas["Subscription"];

const count = (value: number | null) => (value === null ? "–" : formatCount(value));

const COLUMNS: readonly Column<Subscription>[] = [
  {
    title: "Subscription",
    width: "minmax(0, 2fr)",
    cell: ({ id, appId, eventUid }) => (
      <MaybeLink href={viewHref("/apps/:appId/subscriptions", { appId }, { subscription: id })}>
        <UntrustedText>{eventUid}</UntrustedText>
      </MaybeLink>
    ),
  },
  {
    title: "State",
    width: "6rem",
    cell: ({ state }) => <Badge tone={SUBSCRIPTION_TONES[state]}>{state}</Badge>,
  },
  { title: "Lag", width: "5rem", align: "end", cell: ({ lag }) => count(lag) },
  {
    title: "Behind",
    width: "5rem",
    align: "end",
    priority: 2,
    cell: ({ lagSeconds }) => (lagSeconds === null ? "–" : formatDuration(lagSeconds * 1_000)),
  },
  { title: "Pending", width: "5rem", align: "end", priority: 2, cell: ({ pending }) => count(pending) },
  {
    title: "Dead letters",
    width: "6rem",
    align: "end",
    priority: 3,
    cell: ({ deadLetters }) => count(deadLetters),
  },
];

export function SubscriptionLags({ appId }: { readonly appId: string }) {
  const loaded = useLoad(
    async (signal) => {
      const { rows } = await api.list("/apps/{appId}/subscriptions", {
        path: { appId },
        query: { limit: 200 },
        signal,
      });
      return rows.toSorted((a, b) => (b.lag ?? 0) - (a.lag ?? 0));
    },
    [appId],
    { everyMs: 15_000 },
  );
  return (
    <Section title="Subscriptions">
      <WhenLoaded loaded={loaded} lines={2}>
        {(rows) =>
          rows.length === 0 ? (
            <Empty title="This app has no subscriptions">
              A subscription stores a reader's position on its topics.{" "}
              <a href={`/console/apps/${appId}/subscriptions`}>Create one</a>.
            </Empty>
          ) : (
            <Table label="Subscriptions" columns={COLUMNS} rows={rows} keyOf={({ id }) => id} maxRows={8} />
          )
        }
      </WhenLoaded>
    </Section>
  );
}
