import { useState } from "preact/hooks";
import { api } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import type { ListPage } from "../../api/list-page.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { columnsFor } from "../../kit/layout/app-column.tsx";
import { useAppId } from "../../kit/layout/apps.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Icon } from "../../kit/layout/icons.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { Page } from "../../kit/layout/page.tsx";
import { createAppFilter, useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import type { CursorRequest } from "../../kit/list/cursor-pages.ts";
import { FilterBar, type FilterField, namesOf, TIME_FILTERS, useFilters } from "../../kit/list/filters.tsx";
import { PagedTable, ScannedTable } from "../../kit/list/loaded-table.tsx";
import { useNewest } from "../../kit/list/use-pages.ts";
import { useScan } from "../../kit/list/use-scan.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { EVENT_COLUMNS, shortenEvent } from "./columns.tsx";
import { type Event, placeOf } from "./event.ts";
import { EventPanel } from "./event-panel.tsx";
import { parseFieldFilter } from "./field-filter.ts";

/** Number of events after which a search pauses. The API searches 5,000 events per request. */
const MAX_SCANNED = 100_000;

/** List of the newest events of all apps. */
export default function Events() {
  const [turn, setTurn] = useState(0);
  const { query, go } = useAddress();
  const places = useTopicFilters(query.app || undefined);
  const fields: readonly FilterField[] = [
    createAppFilter(),
    places.channel,
    places.type,
    { name: "id", label: "Id", kind: "text", placeholder: "event or entry id" },
    { name: "field", label: "Field", kind: "text", placeholder: "order.total = 12" },
    ...TIME_FILTERS,
  ];
  const { values, resolved, set } = useFilters(namesOf(fields), turn);
  const current = useAppId();
  const { app: appId, field, ...others } = resolved;
  const filter = field === undefined ? undefined : parseFieldFilter(field);
  const { path, value } = filter ?? {};
  const asked = {
    ...others,
    ...(appId !== undefined && { appId }),
    ...(path !== undefined && { path }),
    ...(value !== undefined && { value }),
  };
  const load: Load = async (page, signal) => {
    const { rows, ...found } = await api.list("/events", { query: { ...asked, ...page }, signal });
    return { ...found, rows: (rows as readonly Event[]).map(shortenEvent) };
  };
  const refresh = (): void => setTurn((before) => before + 1);
  const tailHref = current && viewHref("/apps/:appId/tail", { appId: appId ?? current });
  const List = resolved.id === undefined && filter === undefined ? All : Found;
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
            needs={[JSON.stringify(asked), turn]}
            isFiltered={Object.keys(values).length > 0}
            isRange={resolved.from !== undefined || resolved.to !== undefined}
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

type Load = (page: CursorRequest, signal: AbortSignal) => Promise<ListPage<Event>>;

interface ListProps {
  readonly load: Load;
  readonly needs: readonly unknown[];
  readonly isFiltered: boolean;
  /** Whether the list is limited to a time range. The API does not count the events in it. */
  readonly isRange: boolean;
}

function All({ load, needs, isFiltered, isRange }: ListProps) {
  const { total, ...pages } = useNewest<Event>(load, needs, !isRange);
  return (
    <PagedTable
      {...useTable()}
      of="events"
      pages={pages}
      empty={
        <Empty title={isFiltered ? "No events match the filters" : "No events yet"}>
          {!isFiltered && "Send something to a channel, or a test event from the channel's page."}
        </Empty>
      }
      lines={10}
    />
  );
}

function Found({ load, needs, isRange }: ListProps) {
  const { total, ...scan } = useScan<Event>({ load, maxScanned: MAX_SCANNED }, needs);
  return (
    <ScannedTable
      {...useTable()}
      of="retained events"
      scan={{ ...scan, total: isRange ? undefined : total }}
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
    columns: columnsFor(EVENT_COLUMNS, query.app || undefined),
    keyOf: placeOf,
    onOpen: (event: Event) => go({ event: placeOf(event) }),
    openKey: query.event,
  };
}
