import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { Sparkline } from "../../kit/chart/sparkline.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { APP_COLUMN } from "../../kit/layout/app-column.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import { Section } from "../../kit/layout/page.tsx";
import { type Column, Table } from "../../kit/list/table.tsx";
import { formatDuration, formatShort } from "../../kit/text/numbers.ts";
import { type Range, startOf } from "./range.ts";
import { listHref } from "./rows.ts";

type Totals = Schemas["ChannelTotals"];

const SHOWN = 10;
/** App and channel of the counts that have no series of their own. */
const OTHER = "other";

/** Lists the channels with the most deliveries in the range. */
export function BusyChannels({ range }: { readonly range: Range }) {
  const loaded = useLoad(
    async (signal) => {
      const from = new Date(startOf(range)).toISOString();
      const { rows, total } = await api.list("/metrics/channels", { query: { from, limit: SHOWN }, signal });
      return { rows, total, columns: columnsOf(from) };
    },
    [range],
    { everyMs: 15_000 },
  );
  return (
    <WhenLoaded loaded={loaded} lines={4} as="rows">
      {({ rows, total, columns }) =>
        rows.length > 0 && (
          <Section title={total > SHOWN ? `Busiest ${SHOWN} of ${total} channels` : "Channels by volume"}>
            <Table
              label="Channels by volume"
              columns={columns}
              rows={rows}
              keyOf={({ appId, channel }) => `${appId}/${channel}`}
              maxRows={SHOWN}
            />
          </Section>
        )
      }
    </WhenLoaded>
  );
}

const columnsOf = (from: string): readonly Column<Totals>[] => {
  const to = (
    view: "deliveries" | "quarantine",
    { appId, channel }: Totals,
    query: Readonly<Record<string, string>> = {},
  ) => (appId === OTHER ? undefined : listHref(view, appId, { channel, from, ...query }));
  return [
    {
      title: "Channel",
      width: "minmax(0, 2fr)",
      cell: ({ appId, channel }) => (
        <MaybeLink
          href={appId === OTHER ? undefined : viewHref("/apps/:appId/channels", { appId }, { channel })}
        >
          {channel}
        </MaybeLink>
      ),
    },
    APP_COLUMN,
    {
      title: "Received over time",
      width: "minmax(4rem, 1.5fr)",
      cell: ({ trend }) => (
        <Sparkline
          label={`Received: ${trend.at(-1) ?? 0} in the newest interval, at most ${Math.max(0, ...trend)}`}
          values={trend}
        />
      ),
    },
    {
      title: "Received",
      width: "5rem",
      align: "end",
      cell: (row) => <Count value={row.received} href={to("deliveries", row)} />,
    },
    {
      title: "Published",
      width: "5rem",
      align: "end",
      priority: 2,
      cell: ({ published }) => <Count value={published} />,
    },
    {
      title: "Quarantined",
      width: "6rem",
      align: "end",
      priority: 2,
      cell: (row) => <Count value={row.quarantined} href={to("quarantine", row)} />,
    },
    {
      title: "Rejected",
      width: "5rem",
      align: "end",
      priority: 3,
      cell: (row) => <Count value={row.rejected} href={to("deliveries", row, { status: "refused" })} />,
    },
    {
      title: "p99",
      width: "5rem",
      align: "end",
      priority: 3,
      cell: ({ latencyP99Ms }) => (latencyP99Ms === null ? "–" : formatDuration(latencyP99Ms)),
    },
  ];
};

const Count = ({ value, href }: { readonly value: number; readonly href?: string | undefined }) =>
  value === 0 ? <span class="faint">0</span> : <MaybeLink href={href}>{formatShort(value)}</MaybeLink>;
