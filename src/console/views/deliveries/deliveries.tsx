import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import { api } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { REASON_NAMES } from "../../kit/explained/reasons.ts";
import { Empty } from "../../kit/feedback/states.tsx";
import { APP_COLUMN, columnsFor } from "../../kit/layout/app-column.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Icon } from "../../kit/layout/icons.tsx";
import { Badge, Page } from "../../kit/layout/page.tsx";
import { createAppFilter, useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import {
  choiceFilter,
  FilterBar,
  type FilterField,
  namesOf,
  TIME_FILTERS,
  useFilters,
} from "../../kit/list/filters.tsx";
import { PagedTable, ScannedTable } from "../../kit/list/loaded-table.tsx";
import { type Column, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { useNewest } from "../../kit/list/use-pages.ts";
import { useScan } from "../../kit/list/use-scan.ts";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatBytes, formatDuration } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedCode } from "../../kit/text/untrusted-text.tsx";
import { type Delivery, STATUS_NAMES, STATUSES, type Status } from "./statuses.ts";

/** List of the newest deliveries of all apps, including rejected ones. */
export default function Deliveries() {
  const [turn, setTurn] = useState(0);
  const { query } = useAddress();
  const places = useTopicFilters(query.app || undefined);
  const fields: readonly FilterField[] = [
    createAppFilter(),
    places.channel,
    choiceFilter("status", "Status", STATUS_NAMES),
    places.type,
    choiceFilter("reason", "Reason", REASON_NAMES),
    { name: "requestId", label: "Request", kind: "text", placeholder: "X-Request-Id" },
    { name: "eventId", label: "Event", kind: "text", placeholder: "event or entry id" },
    { name: "item", label: "Quarantined", kind: "text", placeholder: "item id" },
    ...TIME_FILTERS,
  ];
  const { values, resolved, set } = useFilters(namesOf(fields), turn);
  const { app: appId, type, reason, item, status, ...others } = resolved;
  const asked = {
    ...others,
    ...(appId !== undefined && { appId }),
    ...(status !== undefined && { status: status as Status }),
  };
  const load: Load = ({ limit, cursor }, signal) =>
    api.list("/deliveries", { query: { ...asked, limit, ...(cursor && { cursor }) }, signal });
  const needs = [JSON.stringify(asked), turn];
  // Whether to search in the browser, because the API cannot filter by these fields.
  const isScan = type !== undefined || reason !== undefined || item !== undefined;
  const fits = ({ events, quarantine, reason: why }: Delivery): boolean =>
    (item === undefined || quarantine.some(({ id }) => id === item)) &&
    (type === undefined || events.some((event) => event.type === type)) &&
    (reason === undefined || why === reason || quarantine.some((one) => one.reason === reason));
  const List = isScan ? Found : All;
  return (
    <Page
      title="Deliveries"
      lead="A sample of the last day's deliveries: at most one per second, and the newest 100 for each channel."
      actions={
        <Button onClick={() => setTurn((before) => before + 1)}>
          <Icon name="refresh" /> Refresh
        </Button>
      }
    >
      <FilterBar fields={fields} values={values} onChange={set} />
      <List
        load={load}
        needs={[...needs, type, reason, item]}
        fits={fits}
        isFiltered={Object.keys(values).length > 0}
      />
      <ApiCall call={{ method: "GET", path: `/deliveries${formatQuery({ ...asked, limit: 100 })}` }} />
    </Page>
  );
}

type Load = Parameters<typeof useNewest<Delivery>>[0];

interface ListProps {
  readonly load: Load;
  readonly needs: readonly unknown[];
  readonly fits: (delivery: Delivery) => boolean;
  readonly isFiltered: boolean;
}

function All({ load, needs, isFiltered }: ListProps) {
  const pages = useNewest<Delivery>(load, needs);
  return <PagedTable {...useTable()} pages={pages} empty={<Nothing isFiltered={isFiltered} />} lines={10} />;
}

function Found({ load, needs, fits, isFiltered }: ListProps) {
  const scan = useScan<Delivery>({ load, fits, maxScanned: 10_000 }, needs);
  return (
    <ScannedTable
      {...useTable()}
      of="recorded deliveries"
      scan={scan}
      empty={<Nothing isFiltered={isFiltered} />}
    />
  );
}

const Nothing = ({ isFiltered }: { readonly isFiltered: boolean }) => (
  <Empty title={isFiltered ? "No deliveries match the filters" : "No recent deliveries"}>
    {isFiltered
      ? "Records are samples and are deleted after a day. Look for older deliveries in events or quarantine."
      : "Send a delivery to a channel. Older deliveries are in events."}
  </Empty>
);

function useTable() {
  const { query, route } = useLocation();
  return {
    label: "Deliveries",
    of: "deliveries",
    columns: columnsFor(COLUMNS, query.app || undefined),
    keyOf: ({ id }: Delivery) => id,
    onOpen: ({ id, appId }: Delivery) => route(`/console/apps/${encodeURIComponent(appId)}/deliveries/${id}`),
  };
}

const COLUMNS: readonly Column<Delivery>[] = [
  { title: "Time", cell: ({ receivedAt }) => <Time at={receivedAt} />, ...TIME_WIDTHS },
  {
    title: "Status",
    cell: ({ status }) => <Badge tone={STATUSES[status].tone}>{status}</Badge>,
    width: "7rem",
  },
  APP_COLUMN,
  { title: "Channel", cell: ({ channelUid }) => channelUid, priority: 2 },
  { title: "Outcome", cell: (delivery) => outcomeOf(delivery), width: "minmax(0, 2fr)" },
  {
    title: "Request",
    cell: ({ requestId }) =>
      requestId === null ? (
        <span class="faint">fetched</span>
      ) : (
        <UntrustedCode max={64}>{requestId}</UntrustedCode>
      ),
    width: "17rem",
    priority: 3,
  },
  { title: "HTTP", cell: ({ httpStatus }) => httpStatus ?? "–", align: "end", width: "3rem", priority: 2 },
  {
    title: "Size",
    cell: ({ bodyBytes }) => (bodyBytes === null ? "–" : formatBytes(bodyBytes)),
    align: "end",
    width: "5rem",
    priority: 3,
  },
  {
    title: "Took",
    cell: ({ durationMs }) => formatDuration(durationMs),
    align: "end",
    width: "4rem",
    priority: 3,
  },
];

/** Returns the types of the published events, such as `order.created, order.paid`, or the reason why the delivery produced none. */
function outcomeOf({ events, quarantine, reason }: Delivery): string {
  const parts = [
    ...new Set(events.map(({ type }) => type)),
    ...new Set(quarantine.map((item) => item.reason)),
  ];
  return parts.length > 0 ? parts.join(", ") : (reason ?? "");
}
