import { formatQuery } from "../../api/curl.ts";
import { useGet, useList } from "../../api/use-load.ts";
import { LastError, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { type Event, placeOf, timeOf } from "../events/event.ts";
import { SourceState } from "../sources/state-badge.tsx";

interface Props {
  readonly appId: string;
  readonly channelUid: string;
}

const REFRESH_MS = 2_000;
const SHOWN = 5;

/** The newest events of the channel, which appear as they arrive. */
export function FirstEvent({ appId, channelUid }: Props) {
  const query = { channel: channelUid, order: "newest", limit: SHOWN } as const;
  const loaded = useList("/apps/{appId}/events", { path: { appId }, query }, { everyMs: REFRESH_MS });
  return (
    <WhenLoaded loaded={loaded} lines={1}>
      {({ rows }) => (
        <div role="status" class="stack">
          {rows.length === 0 ? (
            <p class="waiting">Waiting for the first event. It appears here when it arrives.</p>
          ) : (
            <ul class="rows">
              {(rows as readonly Event[]).map((event) => (
                <li key={placeOf(event)}>
                  <a
                    class="rows-main"
                    href={`/console/events${formatQuery({ app: appId, event: placeOf(event) })}`}
                  >
                    <UntrustedText max={255}>{event.type}</UntrustedText>
                  </a>
                  <span class="faint nowrap">
                    <Time at={timeOf(event)} as="ago" />
                  </span>
                </li>
              ))}
            </ul>
          )}
        </div>
      )}
    </WhenLoaded>
  );
}

/** State of the source of a channel that fetches its events. */
export function ShownSource({ appId, channelUid }: Props) {
  const loaded = useGet(
    "/apps/{appId}/channels/{channelId}/source",
    { path: { appId, channelId: channelUid } },
    { everyMs: REFRESH_MS },
  );
  return (
    <WhenLoaded loaded={loaded} lines={1}>
      {(source) => (
        <>
          <SourceState {...source} />
          {source.lastError && <LastError error={source.lastError} isBad={source.health === "failing"} />}
          <a href={`/console/sources${formatQuery({ app: appId, channel: channelUid })}`}>Open the source</a>
        </>
      )}
    </WhenLoaded>
  );
}
