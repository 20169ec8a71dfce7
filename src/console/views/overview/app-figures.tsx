import { api } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { Chart } from "../../kit/chart/chart.tsx";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { apps } from "../../kit/layout/apps.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { formatBytes, formatCount, formatDuration, formatShort } from "../../kit/text/numbers.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { type Recorded, sumUp } from "./recorded.ts";
import { SubscriptionLags } from "./subscription-lags.tsx";
import { Tile, Tiles } from "./tiles.tsx";

const HOUR_MS = 3_600_000;
/** Maximum page size of the API. */
const ROWS = 200;

export function AppFigures({ appId }: { readonly appId: string }) {
  const name = apps.value?.find(({ id }) => id === appId)?.uid ?? appId;
  return (
    <>
      <section class="section" aria-label="Deliveries of the app">
        <header class="section-head">
          <h2>
            App <UntrustedText max={60}>{name}</UntrustedText>
          </h2>
        </header>
        {hasPermission("deliveries.read") && <Deliveries appId={appId} />}
        {hasPermission("apps.read") && <Topics appId={appId} />}
      </section>
      {hasPermission("apps.read") && <SubscriptionLags appId={appId} />}
    </>
  );
}

function Deliveries({ appId }: { readonly appId: string }) {
  const loaded = useLoad(
    async (signal) => {
      const query = { limit: ROWS, order: "newest" } as const;
      const { rows } = await api.list("/apps/{appId}/deliveries", { path: { appId }, query, signal });
      return sumUp(rows, Date.now(), spanOf(rows));
    },
    [appId],
    { everyMs: 10_000 },
  );
  return (
    <WhenLoaded loaded={loaded} lines={3}>
      {(recorded) => <Outcomes appId={appId} recorded={recorded} />}
    </WhenLoaded>
  );
}

/** Returns the time that the figures cover, in ms: one hour, or less if the loaded records start later. */
function spanOf(rows: readonly { readonly receivedAt: string }[]): number {
  const oldest = rows.length < ROWS ? undefined : rows.at(-1);
  return oldest === undefined
    ? HOUR_MS
    : Math.min(HOUR_MS, Math.max(60_000, Date.now() - Date.parse(oldest.receivedAt)));
}

function Outcomes({ appId, recorded }: { readonly appId: string; readonly recorded: Recorded }) {
  const { count, published, duplicates, quarantined, refused, p50Ms, p99Ms, times, series } = recorded;
  const spanMs = Date.now() - (times[0] ?? 0);
  const toDeliveries = (status?: string) => viewHref("/apps/:appId/deliveries", { appId }, { status });
  const duration = (ms: number | undefined): string => (ms === undefined ? "–" : formatDuration(ms));
  const span = `recorded deliveries, last ${formatDuration(Math.round(spanMs / 60_000) * 60_000)}`;
  return (
    <>
      <Tiles>
        <Tile title="Published" href={toDeliveries("published")} hint={span}>
          {formatShort(published)}
        </Tile>
        <Tile title="Duplicates" href={toDeliveries("duplicate")}>
          {formatShort(duplicates)}
        </Tile>
        <Tile
          title="Quarantined"
          href={viewHref("/apps/:appId/quarantine", { appId }) ?? toDeliveries("quarantined")}
          {...(quarantined > 0 && { tone: "warn" as const })}
        >
          {formatShort(quarantined)}
        </Tile>
        <Tile title="Rejected" href={toDeliveries("refused")} {...(refused > 0 && { tone: "bad" as const })}>
          {formatShort(refused)}
        </Tile>
        <Tile title="Response time" href={toDeliveries()} hint="median · 99th percentile">
          {duration(p50Ms)} · {duration(p99Ms)}
        </Tile>
      </Tiles>
      {count === 0 ? (
        <Empty title="No deliveries in this hour">
          Send an event to a channel of this app: its address is in{" "}
          <a href={`/console/apps/${appId}/channels`}>the channel</a>.
        </Empty>
      ) : (
        <div class="card">
          <Chart label="Items by outcome" times={times} series={series} format={formatShort} heightPx={180} />
        </div>
      )}
    </>
  );
}

function Topics({ appId }: { readonly appId: string }) {
  const loaded = useLoad(
    (signal) => api.list("/apps/{appId}/topics", { path: { appId }, query: { limit: ROWS }, signal }),
    [appId],
    { everyMs: 30_000 },
  );
  return (
    <WhenLoaded loaded={loaded} lines={1}>
      {({ rows, total }) => (
        <Tiles>
          <Tile title="Topics" href={viewHref("/apps/:appId/events", { appId })}>
            {formatCount(total)}
          </Tile>
          <Tile
            title="Stored events"
            href={viewHref("/apps/:appId/events", { appId })}
            hint="until their retention ends"
          >
            {formatShort(rows.reduce((sum, { length }) => sum + length, 0))}
          </Tile>
          <Tile title="Topic size" hint="in Redis, estimated">
            {formatBytes(rows.reduce((sum, { bytes }) => sum + bytes, 0))}
          </Tile>
        </Tiles>
      )}
    </WhenLoaded>
  );
}
