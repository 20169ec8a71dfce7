import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { ErrorNote } from "../../kit/feedback/states.tsx";
import { apps, reloadApps, SYSTEM_APP, useAppId } from "../../kit/layout/apps.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { sampleType } from "./sample-type.ts";

interface Props {
  /** `undefined` for a sender without a preset. */
  readonly preset: Schemas["Preset"] | undefined;
  readonly onBack: () => void;
  readonly onMade: (made: { readonly app: string; readonly channel: string }) => void;
}

const NEW_APP = "";

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
  const title = preset?.title ?? "Webhooks";
  const channel = {
    uid,
    kind: "webhook",
    title,
    config: preset ? { preset: preset.preset } : {},
    events: wanted.map((type) => ({ type })),
  };
  const isNew = appId === NEW_APP || appId === undefined;
  const call = isNew
    ? { method: "POST", path: "/blueprints", body: { uid: `${uid}-${suffix}`, title, channels: [channel] } }
    : { method: "POST", path: `/apps/${appId}/channels`, body: channel };
  const action = useAction(async () => {
    if (isNew) {
      const { id: blueprintId } = await send<Schemas["Blueprint"]>(call.method, call.path, call);
      const app = await send<Schemas["App"]>("POST", "/apps/install", { body: { blueprintId } });
      await reloadApps();
      onMade({ app: app.id, channel: uid });
    } else {
      await send<Schemas["Channel"]>(call.method, call.path, call);
      onMade({ app: appId, channel: uid });
    }
  });
  return (
    <form
      class="card make-channel"
      onSubmit={(event) => {
        event.preventDefault();
        void action.run();
      }}
    >
      <h2>{title}</h2>
      {preset && (
        <p class="lead">
          <UntrustedText>{preset.description}</UntrustedText>
        </p>
      )}
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
      {action.error && <ErrorNote error={action.error} />}
      <ApiCall call={call} />
      <div class="row end">
        <button type="button" class="button" onClick={onBack}>
          Back
        </button>
        <button type="submit" class="button primary" disabled={action.isRunning}>
          Create the channel
        </button>
      </div>
    </form>
  );
}
