import { api } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { Chart } from "../../kit/chart/chart.tsx";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { formatCount, formatDuration, formatPercent, formatShort } from "../../kit/text/numbers.ts";
import { hasPermission } from "../../session/session.ts";
import { type Counts, loadCounts } from "./counts.ts";
import { Tile, Tiles } from "./tiles.tsx";

interface Retained {
  readonly duplicate: number | undefined;
  readonly quarantined: number | undefined;
  readonly rejected: number | undefined;
}

interface Props {
  /** `undefined` for all apps. */
  readonly appId: string | undefined;
  /** App whose lists the tiles link to. */
  readonly linkedAppId?: string | undefined;
}

const UNKNOWN: Retained = { duplicate: undefined, quarantined: undefined, rejected: undefined };

/** Shows the exact counts of the last hour, by the minute. */
export function Throughput({ appId, linkedAppId = appId }: Props) {
  const loaded = useLoad(
    async (signal) => {
      const counts = await loadCounts(appId, signal);
      return { counts, retained: appId === undefined ? UNKNOWN : await countRetained(appId, counts, signal) };
    },
    [appId],
    { everyMs: 10_000 },
  );
  return (
    <WhenLoaded loaded={loaded} lines={3}>
      {({ counts, retained }) => <Shown appId={linkedAppId} counts={counts} retained={retained} />}
    </WhenLoaded>
  );
}

/** Counts the stored rows of the last hour to which the tiles lead. */
async function countRetained(appId: string, { fromMs }: Counts, signal: AbortSignal): Promise<Retained> {
  const from = new Date(fromMs).toISOString();
  const deliveries = async (status: "duplicate" | "refused" | "failed"): Promise<number> => {
    const query = { status, from, limit: 1 };
    return (await api.list("/apps/{appId}/deliveries", { path: { appId }, query, signal })).total;
  };
  const quarantine = async (): Promise<number> =>
    (await api.list("/apps/{appId}/quarantine", { path: { appId }, query: { from, limit: 1 }, signal }))
      .total;
  const readsDeliveries = hasPermission("deliveries.read");
  const [duplicate, refused, failed, quarantined] = await Promise.all([
    readsDeliveries ? deliveries("duplicate") : undefined,
    readsDeliveries ? deliveries("refused") : 0,
    readsDeliveries ? deliveries("failed") : 0,
    hasPermission("apps.read") ? quarantine() : undefined,
  ]);
  return { duplicate, quarantined, rejected: readsDeliveries ? refused + failed : undefined };
}

interface ShownProps {
  readonly appId: string | undefined;
  readonly counts: Counts;
  readonly retained: Retained;
}

function Shown({ appId, counts, retained }: ShownProps) {
  const { received, published, duplicate, quarantined, rejected, p50Ms, p99Ms, times, series } = counts;
  const to = (view: string): string | undefined =>
    appId === undefined ? undefined : viewHref(`/apps/:appId/${view}`, { appId });
  const duration = (ms: number | undefined): string => (ms === undefined ? "–" : formatDuration(ms));
  return (
    <>
      {received + published === 0 ? (
        <Empty title="No deliveries in this hour">
          Send an event to the address of a channel. Its counts appear within 10 seconds.
        </Empty>
      ) : (
        <div class="card">
          <Chart
            label="Counts per minute"
            times={times}
            series={series}
            format={formatShort}
            heightPx={180}
          />
        </div>
      )}
      <Tiles>
        <Tile title="Published" href={to("events")} hint="last hour">
          {formatShort(published)}
        </Tile>
        <Tile
          title="Duplicates"
          href={viewHref("/deliveries", {}, { app: appId, status: "duplicate" })}
          {...formatRetained(retained.duplicate, duplicate)}
        >
          {formatShort(duplicate)}
        </Tile>
        <Tile
          title="Quarantined"
          href={viewHref("/quarantine", {}, { app: appId })}
          {...formatRetained(retained.quarantined, quarantined)}
          {...(quarantined > 0 && { tone: "warn" as const })}
        >
          {formatShort(quarantined)}
        </Tile>
        <Tile
          title="Rejected"
          href={viewHref("/deliveries", {}, { app: appId, status: "refused" })}
          {...formatRetained(retained.rejected, rejected)}
          {...(rejected > 0 && { tone: "bad" as const })}
        >
          {formatShort(rejected)}
        </Tile>
        <Tile title="Error rate" hint="rejected, of all received">
          {received === 0 ? "–" : formatPercent(rejected / received)}
        </Tile>
        <Tile
          title="Response time"
          href={viewHref("/deliveries", {}, { app: appId })}
          hint="median · p99, newest minute"
        >
          {duration(p50Ms)} · {duration(p99Ms)}
        </Tile>
      </Tiles>
    </>
  );
}

/** Says how many of the counted rows the linked list shows. A list can also contain rows that were counted differently. */
const formatRetained = (retained: number | undefined, count: number): { readonly hint?: string } =>
  retained === undefined || retained >= count
    ? {}
    : { hint: `${formatCount(retained)} of ${formatCount(count)} retained` };
