import type { Schemas } from "../../api/client.ts";
import { useList } from "../../api/use-load.ts";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import { Section } from "../../kit/layout/page.tsx";
import { type Column, Table } from "../../kit/list/table.tsx";
import { BACKLOG_COLUMNS, STATE_COLUMN } from "../subscriptions/columns.tsx";

const COLUMNS: readonly Column<Schemas["Subscription"]>[] = [
  {
    title: "Subscription",
    width: "minmax(0, 2fr)",
    cell: ({ id, appId, eventUid }) => (
      <MaybeLink href={viewHref("/apps/:appId/subscriptions", { appId }, { subscription: id })}>
        {eventUid}
      </MaybeLink>
    ),
  },
  STATE_COLUMN,
  ...BACKLOG_COLUMNS,
];

export function SubscriptionLags({ appId }: { readonly appId: string }) {
  const request = { path: { appId }, query: { limit: 200 } };
  const loaded = useList("/apps/{appId}/subscriptions", request, { everyMs: 15_000 });
  return (
    <Section title="Subscriptions">
      <WhenLoaded loaded={loaded} lines={2}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Empty title="This app has no subscriptions">
              A subscription stores a reader's position on its topics.{" "}
              <a href={`/console/apps/${appId}/subscriptions`}>Create one</a>.
            </Empty>
          ) : (
            <Table
              label="Subscriptions"
              columns={COLUMNS}
              rows={rows.toSorted((a, b) => (b.lag ?? 0) - (a.lag ?? 0))}
              keyOf={({ id }) => id}
              maxRows={8}
            />
          )
        }
      </WhenLoaded>
    </Section>
  );
}
