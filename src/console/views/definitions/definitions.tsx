import { useState } from "preact/hooks";
import { useLocation } from "preact-iso";
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
import { InferDialog } from "./infer-dialog.tsx";
import { applySchema, parseDefinitions } from "./parse-definitions.ts";
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
      lead="Definitions select the parts of a delivery that become events: typePath selects which definition, when decides whether, and schema checks the data. Changes apply when you save."
    >
      <WhenLoaded loaded={loaded}>
        {({ entity: channel, etag }) => (
          <Editing key={etag ?? ""} appId={appId} channel={channel} etag={etag} onSaved={loaded.reload} />
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

function Editing({ appId, channel, etag, onSaved }: EditingProps) {
  const { route } = useLocation();
  const [before] = useState(() => JSON.stringify(channel.events.map(withoutEmpty), null, 2));
  const [text, setText] = useState(before);
  // The editor ignores later changes of its text, so an applied schema opens a new editor.
  const [applied, setApplied] = useState({ text: before, count: 0 });
  const [dialog, setDialog] = useState<"infer" | "versions">();
  const events = parseDefinitions(text);
  const path = `/apps/${appId}/channels/${channel.uid}`;
  const headers = etag === undefined ? {} : { "if-match": etag };
  const call = { method: "PUT", path, body: { events }, headers };
  const save = useAction(async () => {
    await send<Schemas["Channel"]>(call.method, call.path, call);
    toast("Saved. All workers use the change within two seconds.");
    onSaved();
  });
  const apply = (type: string, schema: object | boolean): void => {
    setDialog(undefined);
    const changed = applySchema(text, type, schema);
    if (changed === undefined) {
      toast(`The editor has no definition of the type ${type}.`);
      return;
    }
    setText(changed);
    setApplied(({ count }) => ({ text: changed, count: count + 1 }));
  };
  const onClose = (): void => setDialog(undefined);
  const dialogProps = { appId, channelUid: channel.uid, onApply: apply, onClose };
  return (
    <div class="definitions">
      <section class="stack" aria-label="Definitions">
        <JsonEditor key={applied.count} text={applied.text} label="Definitions (JSON)" onChange={setText} />
        {events === undefined && <p class="field-error">must be a JSON array of definitions</p>}
        {save.error && <ErrorNote error={save.error} />}
        {hasPermission("apps.write") && (
          <div class="row wrap">
            <Button
              look="primary"
              disabled={events === undefined || text === before || save.isRunning}
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
            <ApiCall call={call} />
          </div>
        )}
      </section>
      {dialog === "infer" && <InferDialog {...dialogProps} />}
      {dialog === "versions" && <VersionsDialog {...dialogProps} />}
      <TryOn appId={appId} channel={channel} events={events} />
    </div>
  );
}

/** Removes unset fields from a definition, so that the editor only shows fields with a value. */
const withoutEmpty = (definition: object): object =>
  Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== null && value !== undefined));
