import { useMemo, useState } from "preact/hooks";
import { api } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Icon } from "../../kit/layout/icons.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import { FilterBar, type FilterField, useFilters } from "../../kit/list/filters.tsx";
import { PagedTable, ScannedTable } from "../../kit/list/loaded-table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { useScan } from "../../kit/list/use-scan.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { eventColumns } from "./columns.tsx";
import { EventPanel } from "./event-panel.tsx";
import { parseFieldFilter } from "./field-filter.ts";
import { channelOf, createTimeline, type Event, placeOf } from "./timeline.ts";

const FILTERS = ["channel", "type", "id", "field", "from", "to"] as const;

export default function Events({ appId }: { readonly appId: string }) {
  const [turn, setTurn] = useState(0);
  const { values, resolved, set } = useFilters(FILTERS, turn);
  const { query, go } = useAddress();
  const places = useTopicFilters(appId);
  const { channel, type, id, field, from, to } = resolved;
  const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const asked = [appId, type, from, to, turn];
  const load = useMemo(
    () =>
      createTimeline(
        (page, signal) =>
          api.list("/apps/{appId}/events", {
            path: { appId },
            query: { ...page, ...(type !== undefined && { type }) },
            signal,
          }),
        range,
      ),
    asked,
  );
  const hasField = field === undefined ? undefined : parseFieldFilter(field);
  const isScan = channel !== undefined || id !== undefined || hasField !== undefined;
  const fits = (event: Event): boolean =>
    (channel === undefined || channelOf(event, appId) === channel) &&
    (id === undefined || event.id === id || event.entryId === id) &&
    (hasField === undefined || hasField(event.data));
  const fields: readonly FilterField[] = [
    places.channel,
    places.type,
    { name: "id", label: "Id", kind: "text", placeholder: "event or entry id" },
    { name: "field", label: "Field", kind: "text", placeholder: "order.total = 12" },
    { name: "from", label: "From", kind: "time" },
    { name: "to", label: "To", kind: "time" },
  ];
  const columns = useMemo(() => eventColumns(appId), [appId]);
  const shared = {
    label: "Events",
    of: "events",
    columns,
    keyOf: placeOf,
    onOpen: (event: Event) => go({ event: placeOf(event) }),
    openKey: query.event,
  };
  const isFiltered = Object.keys(values).length > 0;
  return (
    <Page
      title="Events"
      lead="Events published to the topics of this app, newest first."
      actions={
        <>
          <a class="button" href={`/console/apps/${encodeURIComponent(appId)}/tail`}>
            <Icon name="tail" /> Follow
          </a>
          <Button onClick={() => setTurn((before) => before + 1)}>
            <Icon name="refresh" /> Refresh
          </Button>
        </>
      }
    >
      <FilterBar fields={fields} values={values} onChange={set} />
      <div class="split">
        <div class="stack">
          {isScan ? (
            <Found load={load} fits={fits} needs={[load, channel, id, field]} shared={shared} />
          ) : (
            <All load={load} needs={asked} shared={shared} isFiltered={isFiltered} />
          )}
        </div>
        {query.event !== undefined && (
          <EventPanel
            key={query.event}
            appId={appId}
            place={query.event}
            onClose={() => go({ event: undefined })}
            onGone={() => setTurn((before) => before + 1)}
          />
        )}
      </div>
      <ApiCall
        call={{
          method: "GET",
          path: `/apps/${encodeURIComponent(appId)}/events${formatQuery({ type, ...range, limit: 100 })}`,
        }}
      />
    </Page>
  );
}

type Load = ReturnType<typeof createTimeline>;
type Shared = Omit<Parameters<typeof PagedTable<Event>>[0], "pages" | "empty" | "lines">;

interface AllProps {
  readonly load: Load;
  readonly needs: readonly unknown[];
  readonly shared: Shared;
  readonly isFiltered: boolean;
}

function All({ load, needs, shared, isFiltered }: AllProps) {
  const pages = usePages<Event>(load, needs);
  return (
    <PagedTable
      {...shared}
      pages={pages}
      empty={
        <Empty title={isFiltered ? "No events match the filters" : "No events yet"}>
          {!isFiltered && "Send something to a channel of this app, or a test event from the channel's page."}
        </Empty>
      }
      lines={10}
    />
  );
}

interface FoundProps {
  readonly load: Load;
  readonly fits: (event: Event) => boolean;
  readonly needs: readonly unknown[];
  readonly shared: Shared;
}

function Found({ load, fits, needs, shared }: FoundProps) {
  const scan = useScan<Event>(load, fits, needs);
  return (
    <ScannedTable
      {...shared}
      scan={scan}
      empty={
        <Empty title="No events match the filters">
          Filter by a path in the data, such as <code>order.total = 12</code>, or by a complete id.
        </Empty>
      }
    />
  );
}
