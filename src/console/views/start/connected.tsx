import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { useGet } from "../../api/use-load.ts";
import { ErrorNote, WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Form } from "../../kit/form/form.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { isRegistered, Registration } from "../channels/registration.tsx";
import { FirstEvent, ShownSource } from "./first-event.tsx";
import { generateSecret, isGenerated, NO_SECRET, SecretField } from "./secret-field.tsx";

type Channel = Schemas["Channel"];
type Preset = Schemas["Preset"];

interface Props {
  readonly appId: string;
  readonly channelUid: string;
  readonly preset: Preset | undefined;
  /** Generated secret of the channel. `undefined` after a reload, because Inlet does not show it again. */
  readonly secret: string | undefined;
  readonly onAgain: () => void;
}

const REFRESH_MS = 5_000;

/** Last step of setting up a channel: connects the sender, sends a test event, and shows the first events. */
export function Connected({ appId, channelUid, preset, secret, onAgain }: Props) {
  const loaded = useGet(
    "/apps/{appId}/channels/{channelId}",
    { path: { appId, channelId: channelUid } },
    { everyMs: REFRESH_MS },
  );
  return (
    <WhenLoaded loaded={loaded}>
      {(channel) => (
        <>
          <ol class="setup-steps">
            <Connecting appId={appId} channel={channel} preset={preset} secret={secret} />
            {preset?.secret && !isRegistered(channel) && (
              <li class="card">
                <h2>
                  Set the channel's secret{" "}
                  {channel.state === "needsSetup" ? (
                    <Badge tone="warn">needs secret</Badge>
                  ) : (
                    <Badge tone="ok">ready</Badge>
                  )}
                </h2>
                <SetSecret appId={appId} channel={channel} secret={preset.secret} onSet={loaded.reload} />
              </li>
            )}
            {channel.kind === "webhook" && (
              <li class="card">
                <h2>Send a test event</h2>
                <TestEvent appId={appId} channel={channel} />
              </li>
            )}
            <li class="card">
              <h2>Receive the first event</h2>
              <FirstEvent appId={appId} channelUid={channelUid} />
            </li>
          </ol>
          <div class="row">
            <Button look="quiet" onClick={onAgain}>
              Connect another sender
            </Button>
          </div>
        </>
      )}
    </WhenLoaded>
  );
}

interface ConnectingProps extends Omit<Props, "channelUid" | "onAgain"> {
  readonly channel: Channel;
}

/** Step that brings the sender and the channel together. */
function Connecting({ appId, channel, preset, secret }: ConnectingProps) {
  const { kind, uid, url } = channel;
  const title = preset?.title ?? "the sender";
  if (kind === "polling" || kind === "sse") {
    return (
      <li class="card">
        <h2>Inlet {kind === "sse" ? "reads the stream" : "polls the API"}</h2>
        <ShownSource appId={appId} channelUid={uid} />
      </li>
    );
  }
  if (isRegistered(channel)) {
    return (
      <li class="card">
        <h2>Inlet registers the address at {preset?.title ?? "the provider"}</h2>
        <Registration appId={appId} channelUid={uid} />
        <p>
          While it is active, deliveries become events.{" "}
          <a href={`/console/events${formatQuery({ app: appId })}`}>See the events</a>
        </p>
      </li>
    );
  }
  return (
    <li class="card">
      <h2>
        Give {title} this address{secret !== undefined && " and secret"}
      </h2>
      {url === null ? (
        <p class="note warn">The address is a credential. You need the permission channels.read to see it.</p>
      ) : (
        <Code text={url} label="address" wrap />
      )}
      {secret !== undefined && <ShownSecret secret={secret} />}
      {preset && (
        <ul class="notes">
          {preset.notes.map((note) => (
            <li key={note}>
              <UntrustedText>{note}</UntrustedText>
            </li>
          ))}
          <li>
            <a href={preset.documentationUrl} target="_blank" rel="noreferrer noopener">
              Documentation by {preset.title}
            </a>
            , and <a href={`/docs/presets/${preset.preset}`}>Inlet's page about it</a>.
          </li>
        </ul>
      )}
    </li>
  );
}

const ShownSecret = ({ secret }: { readonly secret: string }) => (
  <>
    <Code text={secret} label="secret" wrap />
    <p class="field-help">Copy the secret now, because Inlet does not show it again.</p>
  </>
);

interface SecretProps {
  readonly appId: string;
  readonly channel: Channel;
  readonly secret: NonNullable<Preset["secret"]>;
  readonly onSet: () => void;
}

function SetSecret({ appId, channel, secret, onSet }: SecretProps) {
  const [given, setGiven] = useState(NO_SECRET);
  /** Generated secret that was saved. */
  const [saved, setSaved] = useState<string>();
  const { value } = given;
  const stored = channel.secretNames.length;
  const path = `/apps/${appId}/channels/${channel.uid}`;
  const action = useAction(async () => {
    await send("PUT", path, { body: { config: { secrets: [{ value }] } } });
    setSaved(isGenerated(given) ? value : undefined);
    setGiven(NO_SECRET);
    toast("Secret saved. Deliveries without a valid signature are now rejected.");
    onSet();
  });
  return (
    <Form onSubmit={action.run}>
      {saved !== undefined && <ShownSecret secret={saved} />}
      <SecretField
        label={secret.label}
        hint={secret.hint}
        secret={given}
        generate={generateSecret}
        onChange={setGiven}
      />
      {stored > 0 && saved === undefined && (
        <p class="field-help">
          The channel has {stored} stored {stored === 1 ? "secret" : "secrets"}. The new secret replaces{" "}
          {stored === 1 ? "it" : "all of them"}.
        </p>
      )}
      {action.error && <ErrorNote error={action.error} />}
      <div class="row">
        <Button type="submit" disabled={value === "" || action.isRunning}>
          Set the secret
        </Button>
      </div>
    </Form>
  );
}

function TestEvent({ appId, channel }: { readonly appId: string; readonly channel: Channel }) {
  const [tested, setTested] = useState<Schemas["TestedChannel"]>();
  const call = { method: "POST", path: `/apps/${appId}/channels/${channel.uid}/test`, body: {} };
  const action = useAction(async () => {
    setTested(await send<Schemas["TestedChannel"]>(call.method, call.path, call));
  });
  return (
    <div class="stack">
      <p>
        Inlet processes a sample delivery without verification. Handlers skip its event unless they accept
        test events.
      </p>
      <div class="row">
        <Button look="primary" disabled={action.isRunning} onClick={() => void action.run()}>
          Send a test event
        </Button>
        <ApiCall call={call} />
      </div>
      {action.error && <ErrorNote error={action.error} />}
      <div role="status" class="stack">
        {tested?.events.map(({ id, type, topic, entryId }) => (
          <p key={entryId} class="note ok">
            <span>
              Event <UntrustedText>{id}</UntrustedText> of the type <UntrustedText>{type}</UntrustedText> is
              on its topic.{" "}
              <a href={`/console/events${formatQuery({ app: appId, event: `${topic}/${entryId}` })}`}>
                See it
              </a>
            </span>
            <code class="faint">{topic}</code>
          </p>
        ))}
        {tested?.failures.map(({ reason, detail, definitions }) => (
          <p key={reason + definitions.join()} class="note warn">
            <span>
              <code>{reason}</code> <UntrustedText>{detail}</UntrustedText>
            </span>
            {reason === "no_match" && <span>The channel has no definition for the type of the sample.</span>}
          </p>
        ))}
      </div>
    </div>
  );
}
