import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { Form, FormFoot } from "../../kit/form/form.tsx";
import { apps, reloadApps, SYSTEM_APP, useAppId } from "../../kit/layout/apps.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { sampleType } from "./sample-type.ts";
import { type StreamChoice, StreamFields } from "./stream-fields.tsx";

export interface MadeChannel {
  readonly app: string;
  readonly channel: string;
  /** Whether the channel polls the provider, so that there is no address to give to it. */
  readonly isPolled: boolean;
}

interface Props {
  /** `undefined` for a sender without a preset. */
  readonly preset: Schemas["Preset"] | undefined;
  readonly onBack: () => void;
  readonly onMade: (made: MadeChannel) => void;
}

const NEW_APP = "";
/** Choice in place of a stream: the provider sends webhooks. */
const WEBHOOKS = "";

export function MakeChannel({ preset, onBack, onMade }: Props) {
  const known = (apps.value ?? []).filter(({ uid }) => uid !== SYSTEM_APP);
  const current = useAppId();
  const mayInstall = hasPermission("blueprints.write");
  const [appId, setAppId] = useState(
    known.some(({ id }) => id === current) ? current : mayInstall ? NEW_APP : (known[0]?.id ?? NEW_APP),
  );
  const [uid, setUid] = useState(preset?.preset ?? "hooks");
  const [types, setTypes] = useState(() => (preset && sampleType(preset)) ?? "received");
  // Random suffix for uids, so that the user can set up the same provider more than once.
  const [suffix] = useState(() => Math.random().toString(36).slice(2, 8));
  const wanted = types
    .split("\n")
    .map((type) => type.trim())
    .filter((type) => type !== "");
  const [streamName, setStreamName] = useState(WEBHOOKS);
  const [choice, setChoice] = useState<StreamChoice>({ params: {}, connectionId: undefined });
  const stream = preset?.streams.find(({ name }) => name === streamName);
  const title = preset?.title ?? "Webhooks";
  const channel =
    preset && stream
      ? {
          uid,
          kind: "polling",
          title: stream.title,
          config: { preset: preset.preset, stream: stream.name, params: choice.params },
        }
      : {
          uid,
          kind: "webhook",
          title,
          config: preset ? { preset: preset.preset } : {},
          events: wanted.map((type) => ({ type })),
        };
  const connectionId = stream && choice.connectionId;
  const isNew = appId === NEW_APP || appId === undefined;
  const call = isNew
    ? { method: "POST", path: "/blueprints", body: { uid: `${uid}-${suffix}`, title, channels: [channel] } }
    : { method: "POST", path: `/apps/${appId}/channels`, body: { ...channel, connectionId } };
  const action = useAction(async () => {
    if (isNew) {
      const { id: blueprintId } = await send<Schemas["Blueprint"]>(call.method, call.path, call);
      const channels = connectionId === undefined ? {} : { [uid]: { connectionId } };
      const app = await send<Schemas["App"]>("POST", "/apps/install", { body: { blueprintId, channels } });
      await reloadApps();
      onMade({ app: app.id, channel: uid, isPolled: stream !== undefined });
    } else {
      await send<Schemas["Channel"]>(call.method, call.path, call);
      onMade({ app: appId, channel: uid, isPolled: stream !== undefined });
    }
  });
  return (
    <Form class="card make-channel" onSubmit={action.run}>
      <h2>{title}</h2>
      {preset && (
        <p class="lead">
          <UntrustedText>{preset.description}</UntrustedText>
        </p>
      )}
      {preset && preset.streams.length > 0 && (
        <label class="field">
          <span class="field-name">How events arrive</span>
          <select
            value={streamName}
            onChange={({ currentTarget: { value } }) => {
              setStreamName(value);
              setUid(value === WEBHOOKS ? preset.preset : value);
              setChoice({ params: {}, connectionId: undefined });
            }}
          >
            <option value={WEBHOOKS}>{title} sends webhooks</option>
            {preset.streams.map(({ name, title: list }) => (
              <option key={name} value={name}>
                Inlet polls: {list}
              </option>
            ))}
          </select>
        </label>
      )}
      {stream ? (
        <StreamFields
          key={stream.name}
          stream={stream}
          choice={choice}
          onChange={setChoice}
          details={(action.error?.details ?? []).map(({ path, message }) => ({
            path: path.replace(/^(?:channels\[0\]\.)?config\.params\.?/, ""),
            message,
          }))}
        />
      ) : (
        <label class="field">
          <span class="field-name">Event types, one per line</span>
          <textarea
            rows={3}
            required
            spellcheck={false}
            value={types}
            onInput={(event) => setTypes(event.currentTarget.value)}
          />
          <span class="field-help">
            {preset
              ? `Use the type names of ${title}. Other types go to quarantine, and you can add types later.`
              : "Every delivery becomes an event of each type until you add paths."}
          </span>
        </label>
      )}
      <label class="field">
        <span class="field-name">Name of the channel</span>
        <input
          type="text"
          required
          pattern="[A-Za-z0-9_\-]{1,64}"
          value={uid}
          onInput={(event) => setUid(event.currentTarget.value)}
        />
      </label>
      <label class="field">
        <span class="field-name">App</span>
        <select value={appId} onChange={(event) => setAppId(event.currentTarget.value)}>
          {mayInstall && <option value={NEW_APP}>a new one</option>}
          {known.map(({ id, uid: name }) => (
            <option key={id} value={id}>
              {name}
            </option>
          ))}
        </select>
      </label>
      <FormFoot action={action} call={call} verb="Create the channel" onCancel={onBack} cancel="Back" />
    </Form>
  );
}
