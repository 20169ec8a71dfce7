import { useEffect, useMemo, useState } from "preact/hooks";
import { useLocation } from "preact-iso";
import type { ErrorDetail } from "../../api/api-error.ts";
import { loadVersioned, type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { JsonEditor } from "../../kit/editor/editor.tsx";
import { ErrorNote, WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Page } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { hasPermission } from "../../session/session.ts";
import { DefinitionsForm } from "./definitions-form.tsx";
import { InferDialog } from "./infer-dialog.tsx";
import { applySchema, parseDefinitions } from "./parse-definitions.ts";
import { type PathTarget, setPath } from "./path-target.ts";
import { TryOn } from "./preview.tsx";
import { VersionsDialog } from "./versions-dialog.tsx";
import "./definitions.css";

interface Props {
  readonly appId: string;
  readonly channelUid: string;
}

export default function Definitions({ appId, channelUid }: Props) {
  const path = `/apps/${appId}/channels/${channelUid}`;
  const loaded = useLoad((signal) => loadVersioned<Schemas["Channel"]>(path, signal), [path]);
  return (
    <Page
      title={`Definitions of ${channelUid}`}
      crumbs={[{ title: "Channels", href: `/console/apps/${appId}/channels?channel=${channelUid}` }]}
      lead={
        <>
          Definitions select the parts of a delivery that become events. A definition applies if the value at
          its <code>typePath</code> is its type. <code>when</code> filters items, and <code>schema</code>{" "}
          checks the data. Changes apply when you save.
        </>
      }
    >
      <WhenLoaded loaded={loaded}>
        {({ entity: channel, etag }) => (
          <Editing appId={appId} channel={channel} etag={etag} onSaved={loaded.reload} />
        )}
      </WhenLoaded>
    </Page>
  );
}

interface EditingProps {
  readonly appId: string;
  readonly channel: Schemas["Channel"];
  readonly etag: string | undefined;
  readonly onSaved: () => void;
}

const MODES = ["Form", "JSON"] as const;

function Editing({ appId, channel, etag, onSaved }: EditingProps) {
  const { route } = useLocation();
  const before = useMemo(() => JSON.stringify(channel.events, null, 2), [channel]);
  const [text, setText] = useState(before);
  const [mode, setMode] = useState<(typeof MODES)[number]>("Form");
  // The editor and JSON fields of the form ignore later changes of their text, so a change from outside opens new ones.
  const [applied, setApplied] = useState({ text: before, count: 0 });
  const [dialog, setDialog] = useState<"infer" | "versions">();
  const [target, setTarget] = useState<PathTarget>({ index: 0, field: "typePath" });
  const [previewErrors, setPreviewErrors] = useState<readonly ErrorDetail[]>(NO_ERRORS);
  const events = useMemo(() => parseDefinitions(text), [text]);
  const path = `/apps/${appId}/channels/${channel.uid}`;
  const headers = etag === undefined ? {} : { "if-match": etag };
  const call = { method: "PUT", path, body: { events }, headers };
  const [sent, setSent] = useState<string>();
  /** Version of the channel that the last save has replaced. */
  const [replacedEtag, setReplacedEtag] = useState<string>();
  const isReloading = replacedEtag !== undefined && replacedEtag === etag;
  const save = useAction(async () => {
    setSent(text);
    await send<Schemas["Channel"]>(call.method, call.path, call);
    setReplacedEtag(etag);
    toast("Saved. All workers use the change within two seconds.");
    onSaved();
  });
  const replace = (changed: string): void => {
    setText(changed);
    setApplied(({ count }) => ({ text: changed, count: count + 1 }));
  };
  // After a save, shows the definitions as stored, unless the user has edited them in the meantime.
  useEffect(() => {
    if (text === sent && text !== before) replace(before);
  }, [before]);
  const changeForm = (changed: readonly unknown[]): void => {
    const next = JSON.stringify(changed, null, 2);
    if (changed.length === events?.length) setText(next);
    else replace(next);
  };
  const choose = (next: (typeof MODES)[number]): void => {
    setApplied(({ count }) => ({ text, count: count + 1 }));
    setMode(next);
  };
  const apply = (type: string, schema: object | boolean): void => {
    setDialog(undefined);
    const changed = applySchema(text, type, schema);
    if (changed === undefined) toast(`There is no definition of the type ${type}.`);
    else replace(changed);
  };
  const onClose = (): void => setDialog(undefined);
  const dialogProps = { appId, channelUid: channel.uid, onApply: apply, onClose };
  // An error of the API is about the definitions that were sent, so it ends when they are edited.
  const failure = text === sent ? save.error : undefined;
  const details = failure && failure.details.length > 0 ? failure.details : previewErrors;
  const editorDetails = useMemo(() => ofEditor(details), [details]);
  return (
    <div class="definitions">
      <section class="stack" aria-label="Definitions">
        <div class="segments" role="group" aria-label="Editor">
          {MODES.map((one) => (
            <button
              key={one}
              type="button"
              aria-pressed={one === mode}
              disabled={events === undefined}
              onClick={() => choose(one)}
            >
              {one}
            </button>
          ))}
        </div>
        {mode === "Form" && events !== undefined ? (
          <DefinitionsForm
            events={events}
            details={details}
            version={applied.count}
            hasPreset={typeof Reflect.get(channel.config, "preset") === "string"}
            onChange={changeForm}
            onTarget={setTarget}
          />
        ) : (
          <JsonEditor
            key={applied.count}
            text={applied.text}
            label="Definitions (JSON)"
            details={editorDetails}
            onChange={setText}
          />
        )}
        {events === undefined && <p class="field-error">must be a JSON array of definitions</p>}
        {failure && <ErrorNote error={failure} />}
        {hasPermission("apps.write") && (
          <div class="row wrap save-bar">
            <Button
              look="primary"
              disabled={events === undefined || text === before || save.isRunning || isReloading}
              onClick={() => void save.run()}
            >
              Save
            </Button>
            <Button onClick={() => route(`/console/quarantine?app=${appId}&channel=${channel.uid}`)}>
              Open quarantine
            </Button>
            {hasPermission("deliveries.read") && (
              <Button onClick={() => setDialog("infer")}>Create schema from events</Button>
            )}
            <Button onClick={() => setDialog("versions")}>Schema versions</Button>
          </div>
        )}
        <ApiCall call={call} />
      </section>
      {dialog === "infer" && <InferDialog {...dialogProps} />}
      {dialog === "versions" && <VersionsDialog {...dialogProps} />}
      <TryOn
        appId={appId}
        channel={channel}
        events={events}
        target={target}
        onTarget={setTarget}
        onPick={(picked) => {
          if (events === undefined) return;
          const changed = setPath(events, target, picked);
          if (mode === "Form") changeForm(changed);
          else replace(JSON.stringify(changed, null, 2));
        }}
        onErrors={setPreviewErrors}
      />
    </div>
  );
}

const NO_ERRORS: readonly ErrorDetail[] = [];

/** Returns the errors of the definitions, with paths that start at their list. */
const ofEditor = (details: readonly ErrorDetail[]): readonly ErrorDetail[] =>
  details
    .filter(({ path }) => path.startsWith("events"))
    .map(({ path, message }) => ({ path: path.slice("events".length), message }));
