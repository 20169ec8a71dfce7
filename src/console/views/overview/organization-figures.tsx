import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { formatDuration, formatShort } from "../../kit/text/numbers.ts";
import { Tile, Tiles } from "./tiles.tsx";

type Figures = Schemas["Overview"];
type Status = NonNullable<Figures["deliveries"]>["byStatus"][number]["status"];

/** Shows figures of all apps: outcomes of the deliveries in the last hour, and the number of unread events. */
export function OrganizationFigures({ appId }: { readonly appId: string | undefined }) {
  const loaded = useLoad((signal) => api.get("/overview", { signal }), [], { everyMs: 10_000 });
  return (
    <section class="section" aria-label="Organization">
      <h2>All apps, last hour</h2>
      <WhenLoaded loaded={loaded} lines={2}>
        {(figures) => <Shown figures={figures} appId={appId} />}
      </WhenLoaded>
    </section>
  );
}

const orUnknown = (value: number | null | undefined, format: (value: number) => string): string =>
  value === null || value === undefined ? "–" : format(value);

interface Props {
  readonly figures: Figures;
  readonly appId: string | undefined;
}

function Shown({ figures: { deliveries, subscriptions, deadLetters }, appId }: Props) {
  const count = (...statuses: readonly Status[]): number =>
    (deliveries?.byStatus ?? [])
      .filter(({ status }) => statuses.includes(status))
      .reduce((sum, one) => sum + one.count, 0);
  // Links lead to the selected app, because the linked views show only one app at a time.
  const to = (view: string, query: Readonly<Record<string, string>> = {}): string | undefined =>
    appId === undefined ? undefined : viewHref(`/apps/:appId/${view}`, { appId }, query);
  const quarantined = count("quarantined");
  const refused = count("refused", "failed");
  const behind = orUnknown(
    subscriptions.lagSeconds,
    (seconds) => `oldest ${formatDuration(seconds * 1_000)}`,
  );
  return (
    <Tiles>
      <Tile
        title="Deliveries accepted"
        href={to("deliveries")}
        hint="sampled: at most one per second and channel"
      >
        {deliveries === null ? "–" : formatShort(count("published", "duplicate"))}
      </Tile>
      <Tile title="Quarantined" href={to("quarantine")} {...(quarantined > 0 && { tone: "warn" as const })}>
        {deliveries === null ? "–" : formatShort(quarantined)}
      </Tile>
      <Tile
        title="Refused"
        href={to("deliveries", { status: "refused" })}
        {...(refused > 0 && { tone: "bad" as const })}
      >
        {deliveries === null ? "–" : formatShort(refused)}
      </Tile>
      <Tile title="Response time" href={to("deliveries")} hint="median · 99th percentile">
        {orUnknown(deliveries?.medianMs, formatDuration)} · {orUnknown(deliveries?.p99Ms, formatDuration)}
      </Tile>
      <Tile title="Not read yet" href={to("subscriptions")} hint={subscriptions.lag ? behind : "no lag"}>
        {orUnknown(subscriptions.lag, formatShort)}
      </Tile>
      <Tile title="Dead letters" href={to("dead-letters")} {...(deadLetters > 0 && { tone: "bad" as const })}>
        {formatShort(deadLetters)}
      </Tile>
    </Tiles>
  );
}
