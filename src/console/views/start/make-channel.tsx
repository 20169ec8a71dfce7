import { useState } from "preact/hooks";
import {
  composeAddition,
  composeBlueprint,
  composeInstall,
  composePoll,
  composeWebhook,
  findOrigin,
} from "../../../channels/compose-channel.ts";
import { api, type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Form, FormFoot } from "../../kit/form/form.tsx";
import { apps, reloadApps, SYSTEM_APP, useAppId } from "../../kit/layout/apps.tsx";
import { ResourceForm } from "../../kit/resource/resource-form.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { NO_CHOICE, ProviderFields } from "./provider-fields.tsx";
import { sampleType } from "./sample-type.ts";

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
/** Choice in place of a stream or a registration: the user sets up the webhook at the provider. */
const BY_HAND = "";
/** Starts the choice of a registration, so that it differs from the name of a stream. */
const REGISTER = "register:";

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
  const [arrival, setArrival] = useState(BY_HAND);
  const [choice, setChoice] = useState(NO_CHOICE);
  const [isConnecting, setConnecting] = useState(false);
  const mayConnect = hasPermission("connections.read");
  const connections = useLoad(
    async (signal) =>
      mayConnect ? api.list("/connections", { query: { limit: 200 }, signal }) : { rows: [], total: 0 },
    [],
  );
  const streams = preset?.streams ?? [];
  const registrations = (preset?.registrations ?? []).filter(
    ({ connection }) => connection === null || mayConnect,
  );
  const stream = streams.find(({ name }) => name === arrival);
  const target = registrations.find((one) => REGISTER + one.target === arrival);
  const called = stream ?? target;
  const title = preset?.title ?? "Webhooks";
  const isNew = appId === NEW_APP || appId === undefined;
  const channel =
    preset && stream
      ? composePoll(uid, stream.title, { preset: preset.preset, stream: stream.name }, choice.params)
      : composeWebhook(uid, title, preset?.preset, wanted);
  const settings = stream
    ? { connectionId: choice.connectionId }
    : { registration: target && { target: target.target, ...choice } };
  const call = isNew
    ? composeBlueprint(`${uid}-${suffix}`, title, channel)
    : composeAddition(appId, channel, settings);
  const install = async (blueprintId: string): Promise<string> => {
    const { method, path, body } = composeInstall(blueprintId, uid, settings);
    const app = await send<Schemas["App"]>(method, path, { body }).catch(async (error) => {
      // The user can correct the settings and try again, which creates the blueprint again.
      await send("DELETE", `/blueprints/${blueprintId}`);
      throw error;
    });
    await reloadApps();
    return app.id;
  };
  const action = useAction(async () => {
    const { id } = await send<{ readonly id: string }>(call.method, call.path, call);
    onMade({ app: isNew ? await install(id) : appId, channel: uid, isPolled: stream !== undefined });
  });
  const origin = called && findOrigin(called, choice.params, choice.baseUrl);
  return (
    <>
      <Form class="card make-channel" onSubmit={action.run}>
        <h2>{title}</h2>
        {preset && (
          <p class="lead">
            <UntrustedText>{preset.description}</UntrustedText>
          </p>
        )}
        {preset && streams.length + registrations.length > 0 && (
          <label class="field">
            <span class="field-name">How events arrive</span>
            <select
              value={arrival}
              onChange={({ currentTarget: { value } }) => {
                setArrival(value);
                setUid(streams.some(({ name }) => name === value) ? value : preset.preset);
                setChoice(NO_CHOICE);
              }}
            >
              <option value={BY_HAND}>You add a webhook at {title}</option>
              {registrations.map((one) => (
                <option key={one.target} value={REGISTER + one.target}>
                  Register at {title}
                  {registrations.length > 1 && `: ${one.title}`}
                </option>
              ))}
              {streams.map(({ name, title: list }) => (
                <option key={name} value={name}>
                  Inlet polls: {list}
                </option>
              ))}
            </select>
          </label>
        )}
        {called && (
          <ProviderFields
            key={arrival}
            api={called}
            choice={choice}
            onChange={setChoice}
            connections={connections}
            onConnect={() => setConnecting(true)}
            details={(action.error?.details ?? []).map(({ path, message }) => ({
              path: path.replace(/^.*\bparams\b\.?/, ""),
              message,
            }))}
          />
        )}
        {!stream && (
          <label class="field">
            <span class="field-name">Event types, one per line</span>
            <textarea
              rows={3}
              required={!target}
              spellcheck={false}
              value={types}
              onInput={(event) => setTypes(event.currentTarget.value)}
            />
            <span class="field-help">
              {preset
                ? `Use the type names of ${title}. Other types go to quarantine, and you can add types later.`
                : "Every delivery becomes an event of each type until you add paths."}
              {target && " Without types, the channel accepts all."}
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
      {isConnecting && called?.connection && (
        <ResourceForm
          title="Create a connection"
          method="post"
          operation="/connections"
          path="/connections"
          verb="Create"
          start={{
            name: title,
            kind: called.connection.kinds[0],
            ...(origin !== undefined && { allowedOrigins: [origin] }),
          }}
          onClose={() => setConnecting(false)}
          onDone={(made) => {
            setConnecting(false);
            setChoice({ ...choice, connectionId: (made as Schemas["Connection"]).id });
            connections.reload();
          }}
        />
      )}
    </>
  );
}
