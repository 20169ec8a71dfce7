import { sendForResponse } from "../../api/client.ts";
import { fillPath, formatQuery } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { ConfirmButton } from "../../kit/feedback/buttons.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { nameOfApp } from "../../kit/layout/apps.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Facts, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { decodeBase64 } from "../../kit/text/base64.ts";
import { Copyable } from "../../kit/text/copy.tsx";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { hasPermission } from "../../session/session.ts";
import { appOf, channelOf, type Event, timeOf } from "./event.ts";

interface Props {
  /** `<topic>/<entry id>` */
  readonly place: string;
  readonly onClose: () => void;
  readonly onGone: () => void;
}

export function EventPanel({ place, onClose, onGone }: Props) {
  const split = place.lastIndexOf("/");
  const topic = place.slice(0, split);
  const appId = appOf({ topic });
  const path = { appId, topic, entryId: place.slice(split + 1) };
  const callPath = fillPath("/apps/{appId}/events/{topic}/{entryId}", path);
  const loaded = useLoad(
    async (signal) => {
      // Load the event as text, because parsing JSON could alter large numbers.
      const text = await (await sendForResponse("GET", callPath, { signal })).text();
      return { text, event: JSON.parse(text) as Event };
    },
    [place],
  );
  return (
    <DetailPanel title="Event" onClose={onClose}>
      <WhenLoaded loaded={loaded} lines={8}>
        {({ text, event }) => (
          <>
            <div class="row wrap">
              {hasPermission("deliveries.read") && (
                <a
                  class="button"
                  href={`/console/deliveries${formatQuery({ app: appId, eventId: event.entryId })}`}
                >
                  Open the delivery
                </a>
              )}
              {hasPermission("apps.write") && (
                <ConfirmButton
                  label="Delete"
                  look="delete"
                  title="Delete this event permanently?"
                  verb="Delete"
                  danger
                  call={{ method: "DELETE", path: callPath }}
                  done="Deleted"
                  onDone={() => {
                    onClose();
                    onGone();
                  }}
                >
                  <p>
                    This removes the event from its topic, dead letters, pending handler calls, quarantine and
                    delivery records, including the whole delivery. Readers keep copies that they have already
                    received.
                  </p>
                </ConfirmButton>
              )}
            </div>
            <Facts
              facts={{
                Type: event.type,
                Id: <Copyable text={event.id} what="event id" />,
                App: nameOfApp(appId),
                Channel: channelOf(event),
                Appended: <Time at={timeOf(event)} as="full" />,
                Source: event.source,
                Topic: <Copyable text={event.topic} what="topic" />,
                Entry: <Copyable text={event.entryId} what="entry id" />,
              }}
            />
            {event.data_base64 !== undefined && (
              <Section title="Data">
                <Payload
                  content={decodeBase64(event.data_base64)}
                  label="the data"
                  fileName={`${event.entryId}.bin`}
                />
              </Section>
            )}
            <Section title="The event">
              <Payload content={text} label="the event" fileName={`${event.entryId}.txt`} />
            </Section>
            <ApiCall call={{ method: "GET", path: callPath }} />
          </>
        )}
      </WhenLoaded>
    </DetailPanel>
  );
}
