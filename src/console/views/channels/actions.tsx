import { type Schemas, send } from "../../api/client.ts";
import { ActionButton, ConfirmButton, DialogButton, PauseButton } from "../../kit/feedback/buttons.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Settings } from "./settings.tsx";

interface Props {
  readonly channel: Schemas["Channel"];
  readonly etag: string | undefined;
  readonly onChanged: () => void;
}

const GRACE_SECONDS = 86_400;

/** Buttons that change a channel or test it. */
export function ChannelActions({ channel, etag, onChanged }: Props) {
  const { appId, uid, kind, state } = channel;
  const path = `/apps/${appId}/channels/${uid}`;
  const test = async (): Promise<void> => {
    const { events, failures } = await send<Schemas["TestedChannel"]>("POST", `${path}/test`, { body: {} });
    const [failure] = failures;
    if (events.length > 0) toast(`The test event is on ${events[0]?.topic}.`);
    else toast(`No event: ${failure?.reason} ${failure?.detail}`, "bad");
  };
  return (
    <>
      <DialogButton label="Settings">
        {(onClose) => <Settings channel={channel} etag={etag} onClose={onClose} onSaved={onChanged} />}
      </DialogButton>
      <PauseButton
        path={path}
        isPaused={state === "paused"}
        effect="Deliveries are stored, and published in order when you resume."
        onDone={onChanged}
      />
      {(kind === "webhook" || kind === "cloudevents") && (
        <>
          <ActionButton act={test}>Test event</ActionButton>
          <NewAddress path={path} one="channel" onDone={onChanged}>
            Give the sender the new one by then.
          </NewAddress>
        </>
      )}
    </>
  );
}

interface NewAddressProps {
  /** API path of the channel or intake. */
  readonly path: string;
  readonly one: "channel" | "intake";
  /** Next step of the user. */
  readonly children: string;
  readonly onDone: () => void;
}

/** Button that replaces the address of a channel or intake. */
export const NewAddress = ({ path, one, children, onDone }: NewAddressProps) => (
  <ConfirmButton
    label="New address"
    title={`Create a new address for this ${one}?`}
    verb="Create"
    call={{ method: "POST", path: `${path}/rotate`, body: { graceSeconds: GRACE_SECONDS } }}
    done={`The ${one} has a new address. The old one stays valid for a day.`}
    onDone={onDone}
  >
    <p>The old address stays valid for a day. {children}</p>
  </ConfirmButton>
);
