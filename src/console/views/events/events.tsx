import { useState } from "preact/hooks";
import { api, type ListPage } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { columnsFor } from "../../kit/layout/app-column.tsx";
import { useAppId } from "../../kit/layout/apps.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Icon } from "../../kit/layout/icons.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { Page } from "../../kit/layout/page.tsx";
import { createAppFilter, useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import { FilterBar, type FilterField, useFilters } from "../../kit/list/filters.tsx";
import { PagedTable, ScannedTable } from "../../kit/list/loaded-table.tsx";
import { useNewest } from "../../kit/list/use-pages.ts";
import { useScan } from "../../kit/list/use-scan.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { EVENT_COLUMNS } from "./columns.tsx";
import { type Event, placeOf } from "./event.ts";
import { EventPanel } from "./event-panel.tsx";
import { parseFieldFilter } from "./field-filter.ts";

const FILTERS = ["app", "channel", "type", "id", "field", "from", "to"] as const;

/** List of the newest events of all apps. */
export default function Events() {
  const [turn, setTurn] = useState(0);
  const { values, resolved, set } = useFilters(FILTERS, turn);
  const { query, go } = useAddress();
  const current = useAppId();
  const { app: appId, id, field, ...others } = resolved;
  const places = useTopicFilters(appId);
  const asked = { ...others, ...(appId !== undefined && { appId }) };
  const isRange = resolved.from !== undefined || resolved.to !== undefined;
  const load: Load = async ({ limit, offset = 0, cursor }, signal) => {
    const page = { limit, ...(cursor !== undefined && { cursor }) };
    const { rows, total, next } = await api.list("/events", { query: { ...asked, ...page }, signal });
    // The API does not count the events in a time range, so the total is the number of events that are known to exist.
    const known = offset + rows.length + (next === undefined ? 0 : 1);
    return { rows: rows as readonly Event[], total: isRange ? known : total, next };
  };
  const hasField = field === undefined ? undefined : parseFieldFilter(field);
  const isScan = id !== undefined || hasField !== undefined;
  const fits = (event: Event): boolean =>
    (id === undefined || event.id === id || event.entryId === id) &&
    (hasField === undefined || hasField(event.data));
  const fields: readonly FilterField[] = [
    createAppFilter(),
    places.channel,
    places.type,
    { name: "id", label: "Id", kind: "text", placeholder: "event or entry id" },
    { name: "field", label: "Field", kind: "text", placeholder: "order.total = 12" },
    { name: "from", label: "From", kind: "time" },
    { name: "to", label: "To", kind: "time" },
  ];
  const refresh = (): void => setTurn((before) => before + 1);
  const tailHref = current && viewHref("/apps/:appId/tail", { appId: appId ?? current });
  const List = isScan ? Found : All;
  return (
    <Page
      title="Events"
      lead="Published events of all apps, newest first."
      actions={
        <>
          {tailHref && (
            <a class="button" href={tailHref}>
              <Icon name="tail" /> Follow
            </a>
          )}
          <Button onClick={refresh}>
            <Icon name="refresh" /> Refresh
          </Button>
        </>
      }
    >
      <FilterBar fields={fields} values={values} onChange={set} />
      <div class="split">
        <div class="stack">
          <List
            load={load}
            fits={fits}
            needs={[JSON.stringify(asked), id, field, turn]}
            isFiltered={Object.keys(values).length > 0}
            isRange={isRange}
          />
        </div>
        {query.event !== undefined && (
          <EventPanel
            key={query.event}
            place={query.event}
            onClose={() => go({ event: undefined })}
            onGone={refresh}
          />
        )}
      </div>
      <ApiCall call={{ method: "GET", path: `/events${formatQuery({ ...asked, limit: 100 })}` }} />
    </Page>
  );
}

type Load = (
  page: { readonly limit: number; readonly offset?: number; readonly cursor?: string },
  signal: AbortSignal,
) => Promise<ListPage<Event>>;

interface ListProps {
  readonly load: Load;
  readonly fits: (event: Event) => boolean;
  readonly needs: readonly unknown[];
  readonly isFiltered: boolean;
  /** Whether the list is limited to a time range, so that its number of events is unknown. */
  readonly isRange: boolean;
}

function All({ load, needs, isFiltered, isRange }: ListProps) {
  const { total, ...pages } = useNewest<Event>(load, needs);
  return (
    <PagedTable
      {...useTable()}
      pages={isRange || total === undefined ? pages : { ...pages, total }}
      empty={
        <Empty title={isFiltered ? "No events match the filters" : "No events yet"}>
          {!isFiltered && "Send something to a channel, or a test event from the channel's page."}
        </Empty>
      }
      lines={10}
    />
  );
}

function Found({ load, fits, needs }: ListProps) {
  const scan = useScan<Event>(load, fits, needs);
  return (
    <ScannedTable
      {...useTable()}
      scan={scan}
      empty={
        <Empty title="No events match the filters">
          Filter by a path in the data, such as <code>order.total = 12</code>, or by a complete id.
        </Empty>
      }
    />
  );
}

function useTable() {
  const { query, go } = useAddress();
  return {
    label: "Events",
    of: "events",
    columns: columnsFor(EVENT_COLUMNS, query.app || undefined),
    keyOf: placeOf,
    onOpen: (event: Event) => go({ event: placeOf(event) }),
    openKey: query.event,
  };
}
