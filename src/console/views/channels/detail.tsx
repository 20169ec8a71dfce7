import { useState } from "preact/hooks";
import { loadVersioned, type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { ErrorNote, WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Facts, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { isRegistered, Registration } from "./registration.tsx";
import { Settings } from "./settings.tsx";
import { ChannelState } from "./state-badge.tsx";

interface Props {
  readonly appId: string;
  readonly channelUid: string;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

const REFRESH_MS = 5_000;

export function ChannelDetail({ appId, channelUid, onClose, onChanged }: Props) {
  const path = `/apps/${appId}/channels/${channelUid}`;
  const loaded = useLoad((signal) => loadVersioned<Schemas["Channel"]>(path, signal), [appId, channelUid], {
    everyMs: REFRESH_MS,
  });
  const changed = (): void => {
    loaded.reload();
    onChanged();
  };
  return (
    <DetailPanel title={channelUid} onClose={onClose}>
      <WhenLoaded loaded={loaded}>
        {({ entity: channel, etag }) => (
          <>
            <Shown appId={appId} channel={channel} />
            {hasPermission("apps.write") && (
              <Actions
                appId={appId}
                channel={channel}
                etag={etag}
                onChanged={changed}
                onDeleted={() => {
                  onClose();
                  onChanged();
                }}
              />
            )}
            <Section title="Settings">
              <Payload
                content={JSON.stringify(channel.config)}
                label="settings"
                fileName={`${channelUid}.json`}
              />
            </Section>
            <ApiCall call={{ method: "GET", path }} />
          </>
        )}
      </WhenLoaded>
    </DetailPanel>
  );
}

function Shown({ appId, channel }: { readonly appId: string; readonly channel: Schemas["Channel"] }) {
  const { uid, kind, state, url, events, connectionId, updatedAt } = channel;
  const isSource = kind === "sse" || kind === "polling";
  return (
    <>
      {url !== null && (
        <Code text={url} label="address" title="Address (anyone who knows it can send events)" wrap />
      )}
      <Facts
        facts={{
          State: <ChannelState state={state} />,
          Kind: kind,
          Changed: <Time at={updatedAt} as="ago" />,
          Connection: connectionId !== null && (
            <a href={`/console/connections?id=${connectionId}`}>{connectionId}</a>
          ),
          Events: (
            <span>
              <UntrustedText>{events.map(({ type }) => type).join(", ")}</UntrustedText>
            </span>
          ),
        }}
      />
      <div class="row wrap">
        <a class="button" href={`/console/apps/${appId}/channels/${uid}/definitions`}>
          Definitions
        </a>
        <a class="button" href={`/console/deliveries?app=${appId}&channel=${uid}`}>
          Deliveries
        </a>
        {isSource && (
          <a class="button" href={`/console/sources?app=${appId}&channel=${uid}`}>
            Source
          </a>
        )}
      </div>
      {isRegistered(channel) && (
        <Section title="Registration">
          <Registration appId={appId} channelUid={uid} />
        </Section>
      )}
    </>
  );
}

interface ActionsProps {
  readonly appId: string;
  readonly channel: Schemas["Channel"];
  readonly etag: string | undefined;
  readonly onChanged: () => void;
  readonly onDeleted: () => void;
}

const GRACE_SECONDS = 86_400;

function Actions({ appId, channel, etag, onChanged, onDeleted }: ActionsProps) {
  const { uid, kind, state } = channel;
  const path = `/apps/${appId}/channels/${uid}`;
  const isPush = kind === "webhook" || kind === "cloudevents";
  const [asked, setAsked] = useState<"settings" | "rotate" | "delete">();
  const close = (): void => setAsked(undefined);
  const turn = state === "paused" ? "resume" : "pause";
  const toggle = useAction(async () => {
    await send("POST", `${path}/${turn}`, { body: {} });
    toast(
      turn === "pause"
        ? "Paused. Deliveries are stored, and published in order when you resume."
        : "Resumed.",
    );
    onChanged();
  });
  const test = useAction(async () => {
    const { events, failures } = await send<Schemas["TestedChannel"]>("POST", `${path}/test`, { body: {} });
    const [failure] = failures;
    if (events.length > 0) toast(`The test event is on ${events[0]?.topic}.`);
    else toast(`No event: ${failure?.reason} ${failure?.detail}`, "bad");
  });
  return (
    <>
      <div class="row wrap">
        <Button onClick={() => setAsked("settings")}>Settings</Button>
        <Button disabled={toggle.isRunning} onClick={() => void toggle.run()}>
          {turn === "pause" ? "Pause" : "Resume"}
        </Button>
        {isPush && (
          <>
            <Button disabled={test.isRunning} onClick={() => void test.run()}>
              Test event
            </Button>
            <Button onClick={() => setAsked("rotate")}>New address</Button>
          </>
        )}
        <Button look="delete" onClick={() => setAsked("delete")}>
          Delete
        </Button>
      </div>
      {toggle.error && <ErrorNote error={toggle.error} />}
      {test.error && <ErrorNote error={test.error} />}
      {asked === "settings" && (
        <Settings appId={appId} channel={channel} etag={etag} onClose={close} onSaved={onChanged} />
      )}
      {asked === "rotate" && (
        <Confirm
          title="Create a new address for this channel?"
          verb="Create"
          call={{ method: "POST", path: `${path}/rotate`, body: { graceSeconds: GRACE_SECONDS } }}
          onClose={close}
          onDone={() => {
            toast("The channel has a new address. The old one stays valid for a day.");
            onChanged();
          }}
        >
          <p>The old address stays valid for a day. Give the sender the new one by then.</p>
        </Confirm>
      )}
      {asked === "delete" && (
        <Confirm
          title="Delete this channel?"
          verb="Delete"
          danger
          typed={uid}
          call={{ method: "DELETE", path }}
          onClose={close}
          onDone={() => {
            toast("Deleted.");
            onDeleted();
          }}
        >
          <p>
            The channel stops within two seconds. Its secrets, cursor and quarantined items are deleted. Its
            events stay until retention removes them.
            {isRegistered(channel) && " Inlet also removes its webhook at the provider."}
          </p>
        </Confirm>
      )}
    </>
  );
}
