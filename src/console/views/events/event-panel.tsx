import { useState } from "preact/hooks";
import { api, got } from "../../api/client.ts";
import { fillPath, queryOf } from "../../api/curl.ts";
import { useLoad } from "../../api/use-load.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Facts, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { bytesOfBase64 } from "../../kit/text/base64.ts";
import { Copyable } from "../../kit/text/copy.tsx";
import { Payload } from "../../kit/text/payload.tsx";
import { Stranger } from "../../kit/text/stranger.tsx";
import { Time } from "../../kit/text/time.tsx";
import { may } from "../../session/session.ts";
import { channelOf, type Event, timeOf } from "./timeline.ts";

interface Props {
  readonly appId: string;
  /** `<topic>/<entry id>` */
  readonly place: string;
  readonly onClose: () => void;
  readonly onGone: () => void;
}

/** One event beside the list, as it stands on its topic. */
export function EventPanel({ appId, place, onClose, onGone }: Props) {
  const split = place.lastIndexOf("/");
  const path = { appId, topic: place.slice(0, split), entryId: place.slice(split + 1) };
  const [isDeleting, setDeleting] = useState(false);
  const loaded = useLoad(
    async (signal) => {
      // As text: parsed and written again, its numbers could change.
      const text: string = await got(
        api.GET("/apps/{appId}/events/{topic}/{entryId}", { params: { path }, parseAs: "text", signal }),
      );
      return { text, event: JSON.parse(text) as Event };
    },
    [place],
  );
  const callPath = fillPath("/apps/{appId}/events/{topic}/{entryId}", path);
  return (
    <DetailPanel title="Event" onClose={onClose}>
      <WhenLoaded loaded={loaded} lines={8}>
        {({ text, event }) => (
          <>
            <div class="row wrap">
              {may("deliveries.read") && (
                <a
                  class="button"
                  href={`/console/apps/${encodeURIComponent(appId)}/deliveries${queryOf({ eventId: event.entryId })}`}
                >
                  Its delivery
                </a>
              )}
              {may("apps.write") && (
                <button type="button" class="button" onClick={() => setDeleting(true)}>
                  Delete
                </button>
              )}
            </div>
            <Facts
              facts={[
                ["Type", <Stranger key="type">{event.type}</Stranger>],
                ["Id", <Copyable key="id" text={event.id} what="event id" />],
                ["Channel", <Stranger key="channel">{channelOf(event, appId)}</Stranger>],
                ["Appended", <Time key="at" at={timeOf(event)} as="full" />],
                ["Source", <Stranger key="source">{event.source}</Stranger>],
                ["Topic", <Copyable key="topic" text={event.topic} what="topic" />],
                ["Entry", <Copyable key="entry" text={event.entryId} what="entry id" />],
              ]}
            />
            {event.data_base64 !== undefined && (
              <Section title="Data">
                <Payload
                  content={bytesOfBase64(event.data_base64)}
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
      {isDeleting && (
        <Confirm
          title="Delete the event for good"
          verb="Delete"
          danger
          call={{ method: "DELETE", path: callPath }}
          act={async () => {
            await got(api.DELETE("/apps/{appId}/events/{topic}/{entryId}", { params: { path } }));
            toast("Deleted");
            onClose();
            onGone();
          }}
          onClose={() => setDeleting(false)}
        >
          <p>
            It is removed from its topic, from dead letters, from what is on its way to a handler, and from
            quarantine and the records of deliveries, with the whole delivery that it came in. What readers
            have taken is theirs.
          </p>
        </Confirm>
      )}
    </DetailPanel>
  );
}
