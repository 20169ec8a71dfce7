import { useEffect, useState } from "preact/hooks";
import { formatQuery } from "../../api/curl.ts";
import { announce } from "../../kit/feedback/announce.tsx";
import { Empty, ErrorNote } from "../../kit/feedback/states.tsx";
import { columnsFor } from "../../kit/layout/app-column.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge, Page, type Tone } from "../../kit/layout/page.tsx";
import { useShortcut } from "../../kit/layout/shortcuts.tsx";
import { useTopicFilters } from "../../kit/layout/use-topic-filters.ts";
import { useAddress } from "../../kit/list/address.ts";
import { FilterBar, type FilterField, useFilters } from "../../kit/list/filters.tsx";
import { Table } from "../../kit/list/table.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { EVENT_COLUMNS } from "./columns.tsx";
import { channelOf, type Event, placeOf } from "./event.ts";
import { EventPanel } from "./event-panel.tsx";
import { parseFieldFilter } from "./field-filter.ts";
import { MAX_SHOWN, type Tail, useTail } from "./use-tail.ts";

const FILTERS = ["channel", "type", "id", "field"] as const;

export default function LiveTail({ appId }: { readonly appId: string }) {
  const { values, set } = useFilters(FILTERS);
  const { query, go } = useAddress();
  const places = useTopicFilters(appId);
  const [isPaused, setPaused] = useState(false);
  const { channel, type, id, field } = values;
  const filter = field === undefined ? undefined : parseFieldFilter(field);
  const path = `/apps/${encodeURIComponent(appId)}/events/stream${formatQuery({ type })}`;
  const tail = useTail({
    path,
    isPaused,
    needs: [channel, type, id, field],
    fits: (event) =>
      (channel === undefined || channelOf(event) === channel) &&
      (type === undefined || event.type === type) &&
      (id === undefined || event.id === id || event.entryId === id) &&
      (filter === undefined || filter.fits(event.data)),
  });
  const { events, seen, state, error, clear, retry } = tail;
  useEffect(() => announce(STATES[state.is].words), [state.is]);
  useShortcut({
    keys: "p",
    description: "Pause or resume",
    run: () => setPaused((before) => !before),
  });
  const fields: readonly FilterField[] = [
    places.channel,
    places.type,
    { name: "id", label: "Id", kind: "text", placeholder: "event or entry id" },
    { name: "field", label: "Field", kind: "text", placeholder: "order.total = 12" },
  ];
  const isFiltered = Object.keys(values).length > 0;
  return (
    <Page
      title="Live tail"
      badges={<Badge tone={STATES[state.is].tone}>{STATES[state.is].words}</Badge>}
      lead={leadOf(state)}
      actions={
        <>
          <Button disabled={seen === 0} onClick={clear}>
            Clear
          </Button>
          <Button look={isPaused ? "primary" : undefined} onClick={() => setPaused(!isPaused)}>
            {isPaused ? "Resume" : "Pause"}
          </Button>
        </>
      }
    >
      <FilterBar fields={fields} values={values} onChange={set} />
      {error && <ErrorNote error={error} onRetry={retry} />}
      <div class="split">
        <div class="stack">
          {events.length === 0 ? (
            <Empty title={isPaused ? "Paused" : isFiltered ? "No matching events yet" : "Waiting for events"}>
              {isFiltered
                ? `${formatCount(seen)} events did not match the filters.`
                : "Send something to a channel of this app: it appears here within a second."}
            </Empty>
          ) : (
            <>
              <Table
                label="Live events"
                columns={columnsFor(EVENT_COLUMNS, appId)}
                rows={{ count: events.length, rowAt: (index) => events[events.length - 1 - index] }}
                keyOf={placeOf}
                onOpen={(event: Event) => {
                  // Pause the list, because new events would push the opened row out of view.
                  setPaused(true);
                  go({ event: placeOf(event) });
                }}
                openKey={query.event}
              />
              <p class="count-line">
                Showing {formatCount(events.length)} of {formatCount(seen)} events
                {events.length === MAX_SHOWN && `; showing the newest ${formatCount(MAX_SHOWN)}`}
              </p>
            </>
          )}
        </div>
        {query.event !== undefined && (
          <EventPanel
            key={query.event}
            place={query.event}
            onClose={() => go({ event: undefined })}
            onGone={clear}
          />
        )}
      </div>
      <ApiCall call={{ method: "GET", path }} />
    </Page>
  );
}

const STATES: Readonly<Record<Tail["state"]["is"], { readonly tone: Tone; readonly words: string }>> = {
  connecting: { tone: "plain", words: "Connecting" },
  live: { tone: "ok", words: "Live" },
  waiting: { tone: "warn", words: "Reconnecting" },
  paused: { tone: "info", words: "Paused" },
  failed: { tone: "bad", words: "Stopped" },
};

function leadOf(state: Tail["state"]): string {
  switch (state.is) {
    case "paused":
      return "When you resume, all events since the pause are shown.";
    case "waiting":
      return `${state.error?.message ?? "The connection was closed."} Reconnecting in ${formatDuration(state.retryMs)}, without losing events.`;
    case "connecting":
    case "live":
    case "failed":
      return "Events of this app as they are published, newest first.";
    default:
      return state satisfies never;
  }
}
