import type { Schemas } from "../../api/client.ts";
import { useGet } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { formatDuration, formatShort } from "../../kit/text/numbers.ts";
import { Tile, Tiles } from "./tiles.tsx";

type Figures = Schemas["Overview"];

/** Shows figures of all apps: the number of unread events, and dead letters. */
export function OrganizationFigures({ appId }: { readonly appId: string | undefined }) {
  const loaded = useGet("/overview", {}, { everyMs: 10_000 });
  return (
    <section class="section" aria-label="Subscriptions of all apps">
      <h2>Subscriptions of all apps</h2>
      <WhenLoaded loaded={loaded} lines={2} as="tiles">
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

function Shown({ figures: { subscriptions, deadLetters }, appId }: Props) {
  // The link leads to the selected app, because the linked view shows only one app at a time.
  const subscriptionsHref =
    appId === undefined ? undefined : viewHref("/apps/:appId/subscriptions", { appId });
  const behind = orUnknown(
    subscriptions.lagSeconds,
    (seconds) => `oldest ${formatDuration(seconds * 1_000)}`,
  );
  return (
    <Tiles>
      <Tile title="Not read yet" href={subscriptionsHref} hint={subscriptions.lag ? behind : "no lag"}>
        {orUnknown(subscriptions.lag, formatShort)}
      </Tile>
      <Tile title="Dead letters" href={viewHref("/dead-letters")} tone={deadLetters > 0 ? "bad" : undefined}>
        {formatShort(deadLetters)}
      </Tile>
    </Tiles>
  );
}
