import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { fillPath, formatQuery } from "../../api/curl.ts";
import { BatchDialog } from "../../kit/failures/batch-dialog.tsx";
import { ActionButton } from "../../kit/feedback/buttons.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { hasPermission } from "../../session/session.ts";
import { createRedrive } from "../quarantine/redrive.tsx";
import { formatDeliveryCurl } from "./delivery-curl.ts";

interface Props {
  readonly appId: string;
  readonly delivery: Schemas["WholeDelivery"];
  /** Called when quarantined items of the delivery were published. */
  readonly onRedriven: () => void;
}

/** Maximum difference between the clocks of the gateway, which dates deliveries, and of Redis, which dates quarantined items. */
const CLOCK_TOLERANCE_MS = 5_000;

/** Buttons of a delivery: the next steps from its result. */
export function DeliveryActions({ appId, delivery, onRedriven }: Props) {
  const [isRedriving, setRedriving] = useState(false);
  const [isRedriven, setRedriven] = useState(false);
  const { channelUid, receivedAt, quarantine, events, ignored } = delivery;
  const firstAt = new Date(Date.parse(receivedAt) - CLOCK_TOLERANCE_MS).toISOString();
  const [event] = events;
  const definitions = viewHref("/apps/:appId/channels/:channelUid/definitions", { appId, channelUid });
  return (
    <>
      {delivery.requestId !== null && delivery.bodyBase64 !== null && hasPermission("channels.read") && (
        <CopyCurl appId={appId} delivery={delivery} />
      )}
      {event !== undefined && (
        <a
          class="button"
          href={`/console/events${formatQuery({ app: appId, event: `${event.topic}/${event.entryId}` })}`}
        >
          Open event
        </a>
      )}
      {definitions !== undefined && quarantine.length + ignored > 0 && (
        <a class="button" href={definitions}>
          Fix the definitions
        </a>
      )}
      {quarantine.length > 0 && !isRedriven && hasPermission("apps.write") && (
        <Button look="primary" onClick={() => setRedriving(true)}>
          Redrive
        </Button>
      )}
      {isRedriven && (
        <a
          class="button"
          href={`/console/quarantine${formatQuery({ app: appId, channel: delivery.channelUid })}`}
        >
          Open quarantine
        </a>
      )}
      {isRedriving && (
        <BatchDialog
          batch={createRedrive({
            collection: fillPath("/apps/{appId}/quarantine", { appId }),
            // A redrive starts with the last row.
            rows: quarantine.map(({ id }) => ({ id, channelUid, firstAt })).toReversed(),
            count: quarantine.length,
          })}
          onClose={() => setRedriving(false)}
          onDone={() => {
            setRedriven(true);
            onRedriven();
          }}
        />
      )}
    </>
  );
}

/** Copies a command that sends the delivery again. The address of the channel is only loaded when it is needed. */
function CopyCurl({ appId, delivery }: Omit<Props, "onRedriven">) {
  const copy = async (): Promise<void> => {
    const path = { appId, channelId: delivery.channelUid };
    const { url } = await api.get("/apps/{appId}/channels/{channelId}", { path });
    const command = formatDeliveryCurl(delivery, url ?? "https://ADDRESS");
    await navigator.clipboard.writeText(command).then(
      () => toast("Copied the delivery as a curl command"),
      () => toast("The browser does not allow this page to copy."),
    );
  };
  return <ActionButton act={copy}>Copy as curl</ActionButton>;
}
