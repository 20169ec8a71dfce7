import type { Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { useGet, useList } from "../../api/use-load.ts";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { APP_COLUMN, columnsFor } from "../../kit/layout/app-column.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { createAppFilter, useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import { FilterBar, useFilters } from "../../kit/list/filters.tsx";
import { type Column, CountLine, Table } from "../../kit/list/table.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Time } from "../../kit/text/time.tsx";
import { SourceDetail } from "./detail.tsx";
import { SourceState } from "./state-badge.tsx";

type Listed = Schemas["ListedSource"];

const REFRESH_MS = 5_000;
/** Maximum number of sources in the list, which is one page of the API. */
const MAX_SHOWN = 200;

const COLUMNS: readonly Column<Listed>[] = [
  { title: "Channel", cell: ({ channelUid }) => channelUid, width: "minmax(0, 1.4fr)" },
  APP_COLUMN,
  { title: "Kind", cell: ({ kind }) => kind, width: "4.5rem", priority: 2 },
  { title: "State", cell: (source) => <SourceState {...source} />, width: "minmax(7rem, 1.6fr)" },
  { title: "Last event", cell: ({ lastEventAt }) => <Time at={lastEventAt} as="ago" />, width: "7rem" },
  { title: "Next", cell: ({ nextPollAt }) => <Time at={nextPollAt} as="ago" />, width: "7rem", priority: 3 },
  {
    title: "Cursor moved",
    cell: ({ cursor }) => <Time at={cursor.updatedAt} as="ago" />,
    width: "7rem",
    priority: 3,
  },
  { title: "Last error", cell: ({ lastError }) => lastError?.message, width: "minmax(0, 2fr)", priority: 2 },
];

const FILTERS = ["app", "channel"] as const;

/** Page of the sources of all apps: streams that are kept open, and addresses that are polled. */
export default function Sources() {
  const { values, set } = useFilters(FILTERS);
  const { query, go } = useAddress();
  const { app: appId, channel } = values;
  const places = useTopicFilters(appId);
  const asked = { ...(appId && { appId }), ...(channel && { channel }) };
  const loaded = useList("/sources", { query: { ...asked, limit: MAX_SHOWN } }, { everyMs: REFRESH_MS });
  const linked = appId && channel ? keyOf({ appId, channelUid: channel }) : undefined;
  const open = query.source ?? linked;
  return (
    <Page
      title="Sources"
      lead="A source reads a stream or polls an address. It publishes events and moves its cursor in one step."
    >
      <FilterBar fields={[createAppFilter(), places.channel]} values={values} onChange={set} />
      <WhenLoaded loaded={loaded}>
        {({ rows, total }) =>
          rows.length === 0 ? (
            <Empty title={Object.keys(values).length > 0 ? "No sources match the filters" : "No sources"}>
              <p>Add a channel of kind sse to follow a stream, or of kind polling to poll an address.</p>
            </Empty>
          ) : (
            <div class="split">
              <div class="stack">
                <Table
                  label="Sources"
                  columns={columnsFor(COLUMNS, appId)}
                  rows={rows}
                  keyOf={keyOf}
                  onOpen={(source) => go({ source: keyOf(source) })}
                  openKey={open}
                />
                <CountLine
                  count={total}
                  of={total > rows.length ? `sources; the newest ${rows.length} are shown` : "sources"}
                />
              </div>
              {rows
                .filter((source) => keyOf(source) === open)
                .map((source) => (
                  <OpenSource
                    key={open}
                    source={source}
                    onClose={() => go({ source: undefined, ...(open === linked && { channel: undefined }) })}
                    onChanged={loaded.reload}
                  />
                ))}
            </div>
          )
        }
      </WhenLoaded>
      <ApiCall call={{ method: "GET", path: `/sources${formatQuery({ ...asked, limit: MAX_SHOWN })}` }} />
    </Page>
  );
}

interface OpenSourceProps {
  readonly source: Listed;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

function OpenSource({ source, onClose, onChanged }: OpenSourceProps) {
  const { appId, channelUid: channelId } = source;
  const loaded = useGet("/apps/{appId}/channels/{channelId}", { path: { appId, channelId } });
  return (
    <WhenLoaded loaded={loaded} lines={8}>
      {(channel) => (
        <SourceDetail
          appId={appId}
          shown={{ channel, source }}
          onClose={onClose}
          onChanged={() => {
            onChanged();
            loaded.reload();
          }}
        />
      )}
    </WhenLoaded>
  );
}

const keyOf = ({ appId, channelUid }: Pick<Listed, "appId" | "channelUid">): string =>
  `${appId}~${channelUid}`;
