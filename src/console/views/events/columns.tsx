import { nameOfApp } from "../../kit/layout/apps.tsx";
import { type Column, TIME_WIDTHS } from "../../kit/list/table.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedCode } from "../../kit/text/untrusted-text.tsx";
import { appOf, channelOf, type Event, timeOf } from "./event.ts";

const SHOWN = 160;

/** Columns of lists of events. */
export const EVENT_COLUMNS: readonly Column<Event>[] = [
  { title: "Time", cell: (event) => <Time at={timeOf(event)} />, ...TIME_WIDTHS },
  { title: "Type", cell: ({ type }) => type, width: "minmax(0, 2fr)" },
  { title: "App", cell: (event) => nameOfApp(appOf(event)), priority: 2 },
  { title: "Channel", cell: (event) => channelOf(event), priority: 3 },
  {
    title: "Id",
    cell: ({ id }) => <UntrustedCode max={128}>{id}</UntrustedCode>,
    width: "minmax(0, 2fr)",
    priority: 2,
  },
  {
    title: "Data",
    cell: (event) => (
      <UntrustedCode class="soft" max={SHOWN}>
        {dataOf(event)}
      </UntrustedCode>
    ),
    width: "minmax(0, 4fr)",
    priority: 3,
  },
];

/**
 * Returns the event with only the start of its data as text, so that a list of many events needs little memory. The panel of an event loads
 * it again.
 */
export function shortenEvent(event: Event): Event {
  const { id, type, source, topic, entryId } = event;
  const shown = dataOf(event);
  // Copy the text, because a slice keeps the whole string in memory.
  return { id, type, source, topic, entryId, ...(shown && { data: JSON.parse(JSON.stringify(shown)) }) };
}

function dataOf({ data, data_base64: base64 }: Event): string | undefined {
  if (base64 !== undefined) return `bytes: ${base64.slice(0, SHOWN)}`;
  if (data === undefined) return undefined;
  return typeof data === "string" ? data.slice(0, SHOWN + 1) : JSON.stringify(data).slice(0, SHOWN + 1);
}
