import type { Schemas } from "../../api/client.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { Badge, Page } from "../../kit/layout/page.tsx";
import { useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { FilterBar, useFilters } from "../../kit/list/filters.tsx";
import { PagedTable } from "../../kit/list/loaded-table.tsx";
import type { Column } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { CatalogDetail } from "./detail.tsx";

type Entry = Schemas["CatalogEntry"];

const COLUMNS: readonly Column<Entry>[] = [
  { title: "Type", cell: ({ type }) => type, width: "minmax(0, 2fr)" },
  { title: "Channel", cell: ({ channelUid }) => channelUid },
  {
    title: "Schema",
    cell: ({ schema }) => (schema === null ? <span class="faint">none</span> : "yes"),
    width: "4.5rem",
    priority: 2,
  },
  {
    title: "Agents",
    cell: ({ agents }) => agents && <Badge tone="info">agents</Badge>,
    width: "5rem",
    priority: 2,
  },
  { title: "Last day", cell: formatLastDay, align: "end", width: "5rem" },
  { title: "Last seen", cell: ({ lastSeenAt }) => <Time at={lastSeenAt} as="ago" />, width: "7rem" },
];

/** Formats the number of events of the last day. A plus sign means that there may have been more. */
function formatLastDay({ eventsLastDay, eventsLastDayIsExact }: Entry): string {
  return `${formatCount(eventsLastDay)}${eventsLastDayIsExact ? "" : "+"}`;
}

const keyOf = ({ channelUid, type }: Entry): string => `${channelUid}:${type}`;

/** Page of the event types of an app. */
export default function Catalog({ appId }: { readonly appId: string }) {
  const filters = useFilters(["channel", "event"]);
  const { channel, event } = filters.values;
  const { channel: channelField } = useTopicFilters(appId);
  const pages = usePages<Entry>(`/apps/${appId}/catalog`, { channel });
  const select = (next: string | undefined): void =>
    filters.set({ ...(channel !== undefined && { channel }), ...(next !== undefined && { event: next }) });
  const opened = findOpened(pages, event);
  return (
    <Page title="Catalog" lead="The event types that this app publishes, with the shape of their data.">
      <FilterBar
        fields={[channelField]}
        values={channel === undefined ? {} : { channel }}
        onChange={(values) => filters.set(values)}
      />
      <div class="split">
        <div class="stack">
          <PagedTable
            label="Event types"
            columns={COLUMNS}
            pages={pages}
            keyOf={keyOf}
            onOpen={(entry) => select(keyOf(entry))}
            openKey={event}
            of="event types"
            empty={
              <Empty title="No event types">
                <p>Add a definition to a channel of this app to publish events.</p>
              </Empty>
            }
          />
          <ApiCall
            label="API call: TypeScript types"
            call={{ method: "GET", path: `/apps/${appId}/types.ts` }}
          />
          <ApiCall
            label="API call: AsyncAPI document"
            call={{ method: "GET", path: `/apps/${appId}/asyncapi.json` }}
          />
        </div>
        {opened !== undefined && (
          <CatalogDetail
            key={keyOf(opened)}
            appId={appId}
            entry={opened}
            onClose={() => select(undefined)}
            onChanged={pages.reload}
          />
        )}
      </div>
    </Page>
  );
}

/** Finds the opened entry among the loaded rows. */
function findOpened(
  {
    count = 0,
    rowAt,
  }: { readonly count: number | undefined; readonly rowAt: (at: number) => Entry | undefined },
  key: string | undefined,
): Entry | undefined {
  if (key === undefined) return undefined;
  for (let at = 0; at < count; at++) {
    const row = rowAt(at);
    if (row !== undefined && keyOf(row) === key) return row;
  }
  return undefined;
}
