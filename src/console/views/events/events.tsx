import { useMemo, useState } from "preact/hooks";
import { api, unwrapList } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { Empty, ErrorNote, Loading } from "../../kit/feedback/states.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Icon } from "../../kit/layout/icons.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import { FilterBar, type FilterField, useFilters } from "../../kit/list/filters.tsx";
import { ScanLine } from "../../kit/list/scan-line.tsx";
import { CountLine, Table } from "../../kit/list/table.tsx";
import { usePages } from "../../kit/list/use-pages.ts";
import { useScan } from "../../kit/list/use-scan.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { eventColumns } from "./columns.tsx";
import { EventPanel } from "./event-panel.tsx";
import { parseFieldFilter } from "./field-filter.ts";
import { channelOf, createTimeline, type Event, placeOf } from "./timeline.ts";

const FILTERS = ["channel", "type", "id", "field", "from", "to"] as const;

export default function Events({ appId }: { readonly appId: string }) {
  const { values, set } = useFilters(FILTERS);
  const { query, go } = useAddress();
  const [turn, setTurn] = useState(0);
  const places = useTopicFilters(appId);
  const { channel, type, id, field, from, to } = values;
  const range = { ...(from !== undefined && { from }), ...(to !== undefined && { to }) };
  const asked = [appId, type, from, to, turn];
  const load = useMemo(
    () =>
      createTimeline(
        (page, signal) =>
          unwrapList(
            api.GET("/apps/{appId}/events", {
              params: { path: { appId }, query: { ...page, ...(type !== undefined && { type }) } },
              signal,
            }),
          ),
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
type Shared = Pick<Parameters<typeof Table<Event>>[0], "label" | "columns" | "keyOf" | "onOpen" | "openKey">;

interface AllProps {
  readonly load: Load;
  readonly needs: readonly unknown[];
  readonly shared: Shared;
  readonly isFiltered: boolean;
}

function All({ load, needs, shared, isFiltered }: AllProps) {
  const pages = usePages<Event>(load, needs);
  const { count } = pages;
  return (
    <>
      {pages.error && <ErrorNote error={pages.error} onRetry={pages.reload} />}
      {count === undefined ? (
        !pages.error && <Loading lines={10} />
      ) : count === 0 ? (
        <Empty title={isFiltered ? "No events match the filters" : "No events yet"}>
          {!isFiltered && "Send something to a channel of this app, or a test event from the channel's page."}
        </Empty>
      ) : (
        <>
          <Table {...shared} count={count} rowAt={pages.rowAt} onRange={pages.onRange} />
          <CountLine count={count} of={count === 1 ? "event" : "events"} />
        </>
      )}
    </>
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
  const { rows } = scan;
  return (
    <>
      {rows.length > 0 && <Table {...shared} count={rows.length} rowAt={(index) => rows[index]} />}
      {rows.length === 0 && !scan.isRunning && !scan.error && (
        <Empty title="No events match the filters">
          Filter by a path in the data, such as <code>order.total = 12</code>, or by a complete id.
        </Empty>
      )}
      {rows.length === 0 && scan.isRunning && <Loading lines={6} />}
      <ScanLine scan={scan} of="events" />
    </>
  );
}
