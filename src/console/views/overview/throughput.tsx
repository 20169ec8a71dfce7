import { useLoad } from "../../api/use-load.ts";
import { Chart } from "../../kit/chart/chart.tsx";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { formatCount, formatDuration, formatPercent, formatShort } from "../../kit/text/numbers.ts";
import { type Counts, loadCounts } from "./counts.ts";
import type { Range } from "./range.ts";
import { countRetained, listHref, type Retained } from "./rows.ts";
import { Tile, Tiles } from "./tiles.tsx";

interface Loaded {
  readonly counts: Counts;
  readonly retained: Retained;
}

interface Props {
  /** `undefined` for all apps. */
  readonly appId: string | undefined;
  readonly range: Range;
  readonly hasChart?: boolean;
}

/** Shows the exact counts of the range, and optionally a chart of them. */
export function Throughput({ appId, range, hasChart = false }: Props) {
  const loaded = useLoad<Loaded>(
    async (signal) => {
      const counts = await loadCounts(appId, range, signal);
      return { counts, retained: await countRetained(appId, counts.fromMs, signal) };
    },
    [appId, range],
    { everyMs: 10_000 },
  );
  return (
    <>
      {hasChart && (
        <WhenLoaded loaded={loaded} lines={1} as="chart">
          {({ counts }) => <ThroughputChart counts={counts} range={range} />}
        </WhenLoaded>
      )}
      {(loaded.data !== undefined || !hasChart || !loaded.error) && (
        <WhenLoaded loaded={loaded} lines={6} as="tiles">
          {(data) => <Shown appId={appId} {...data} />}
        </WhenLoaded>
      )}
    </>
  );
}

function ThroughputChart({ counts, range }: { readonly counts: Counts; readonly range: Range }) {
  const { received, published, times, series } = counts;
  return received + published === 0 ? (
    <Empty title={`No deliveries in the ${range.title.toLowerCase()}`}>
      Send an event to the address of a channel. Its counts appear within 10 seconds.
    </Empty>
  ) : (
    <div class="card chart-card">
      <Chart label="Deliveries" times={times} series={series} heightPx={220} />
    </div>
  );
}

function Shown({ appId, counts, retained }: Loaded & Pick<Props, "appId">) {
  const { fromMs, received, published, duplicate, quarantined, rejected, p50Ms, p99Ms } = counts;
  const from = new Date(fromMs).toISOString();
  const to = (view: "deliveries" | "quarantine", query: Readonly<Record<string, string>> = {}) =>
    listHref(view, appId, { from, ...query });
  const duration = (ms: number | undefined): string => (ms === undefined ? "–" : formatDuration(ms));
  return (
    <Tiles>
      <Tile
        title="Published"
        href={appId === undefined ? undefined : viewHref("/events", {}, { app: appId })}
      >
        {formatShort(published)}
      </Tile>
      <Tile
        title="Duplicates"
        href={to("deliveries", { status: "duplicate" })}
        {...formatRetained(retained.duplicate, duplicate)}
      >
        {formatShort(duplicate)}
      </Tile>
      <Tile
        title="Quarantined"
        href={to("quarantine")}
        {...formatRetained(retained.quarantined, quarantined)}
        tone={quarantined > 0 ? "warn" : undefined}
      >
        {formatShort(quarantined)}
      </Tile>
      <Tile
        title="Rejected"
        href={to("deliveries", { status: "refused" })}
        {...formatRetained(retained.rejected, rejected)}
        tone={rejected > 0 ? "bad" : undefined}
      >
        {formatShort(rejected)}
      </Tile>
      <Tile title="Error rate" hint="rejected, of all received" tone={rejected > 0 ? "bad" : undefined}>
        {received === 0 ? "–" : formatPercent(rejected / received)}
      </Tile>
      <Tile title="Response time" href={to("deliveries")} hint="median · p99, newest interval">
        {duration(p50Ms)} · {duration(p99Ms)}
      </Tile>
    </Tiles>
  );
}

/** Says how many of the counted rows the linked list shows. A list can also contain rows that were counted differently. */
const formatRetained = (retained: number | undefined, count: number): { readonly hint?: string } =>
  retained === undefined || retained >= count
    ? {}
    : { hint: `${formatCount(retained)} of ${formatCount(count)} retained` };
