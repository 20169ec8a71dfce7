import { useList } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { nameOfApp } from "../../kit/layout/apps.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { formatBytes, formatCount, formatShort } from "../../kit/text/numbers.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import type { Range } from "./range.ts";
import { SubscriptionLags } from "./subscription-lags.tsx";
import { Throughput } from "./throughput.tsx";
import { Tile, Tiles } from "./tiles.tsx";

/** Maximum page size of the API. */
const ROWS = 200;

interface Props {
  readonly appId: string;
  readonly range: Range;
}

export function AppFigures({ appId, range }: Props) {
  return (
    <>
      <section class="section" aria-label="Deliveries of the app">
        <header class="section-head">
          <h2>
            App <UntrustedText max={60}>{nameOfApp(appId)}</UntrustedText>
          </h2>
        </header>
        {hasPermission("metrics.read") && <Throughput appId={appId} range={range} />}
        {hasPermission("apps.read") && <Topics appId={appId} />}
      </section>
      {hasPermission("apps.read") && <SubscriptionLags appId={appId} />}
    </>
  );
}

function Topics({ appId }: { readonly appId: string }) {
  const request = { path: { appId }, query: { limit: ROWS } };
  const loaded = useList("/apps/{appId}/topics", request, { everyMs: 30_000 });
  return (
    <WhenLoaded loaded={loaded} lines={3} as="tiles">
      {({ rows, total }) => (
        <Tiles>
          <Tile title="Topics" href={viewHref("/events", {}, { app: appId })}>
            {formatCount(total)}
          </Tile>
          <Tile
            title="Stored events"
            href={viewHref("/events", {}, { app: appId })}
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
