import { useState } from "preact/hooks";
import { api, type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Form, FormFoot } from "../../kit/form/form.tsx";
import type { Choices } from "../../kit/form/inputs.tsx";
import type { Schema } from "../../kit/form/schema.ts";
import { SchemaForm } from "../../kit/form/schema-form.tsx";

interface Props {
  readonly channel: Schemas["Channel"];
  readonly etag: string | undefined;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Form for a channel. The API does not return secrets, and an empty secret field keeps the stored secret. */
export function Settings({ channel, etag, onClose, onSaved }: Props) {
  const { appId } = channel;
  const kind = useLoad(
    async (signal) => {
      const path = { appId };
      const [{ rows }, { rows: channels }] = await Promise.all([
        api.list("/channel-kinds", { signal }),
        api.list("/apps/{appId}/channels", { path, query: { limit: 200 }, signal }),
      ]);
      const found = rows.find((one) => one.kind === channel.kind);
      if (found === undefined) throw new Error(`there is no channel kind ${channel.kind}`);
      return { ...found, choices: choicesOf(channel, channels) };
    },
    [channel.kind],
  );
  const [config, setConfig] = useState<unknown>(channel.config);
  // A setting removed from the form is sent as null, which removes it in a merge patch.
  const gone = Object.keys(channel.config).filter((name) => !Object.hasOwn(config as object, name));
  const body = { config: { ...(config as object), ...Object.fromEntries(gone.map((name) => [name, null])) } };
  const headers = etag === undefined ? {} : { "if-match": etag };
  const call = { method: "PUT", path: `/apps/${appId}/channels/${channel.uid}`, body, headers };
  const save = useAction(async () => {
    await send(call.method, call.path, call);
    toast("Saved. All workers use the change within two seconds.");
    onSaved();
    onClose();
  });
  return (
    <Dialog title={`Settings of ${channel.uid}`} onClose={onClose} wide>
      <WhenLoaded loaded={kind}>
        {({ settings, choices }) => (
          <Form onSubmit={save.run}>
            <SchemaForm
              schema={settings as Schema}
              choices={choices}
              value={config}
              onChange={setConfig}
              details={(save.error?.details ?? []).map(({ path, message }) => ({
                path: path.replace(/^config\./, ""),
                message,
              }))}
            />
            <FormFoot action={save} call={call} verb="Save" onCancel={onClose} />
          </Form>
        )}
      </WhenLoaded>
    </Dialog>
  );
}

/** Returns the polling channels that the channel can wake, and the deleted ones that it still names. */
function choicesOf({ config }: Schemas["Channel"], channels: readonly Schemas["Channel"][]): Choices {
  const polling = channels.filter(({ kind }) => kind === "polling").map(({ uid }) => uid);
  const named = "wakes" in config && Array.isArray(config.wakes) ? config.wakes : [];
  const uids = [...new Set([...polling, ...named])];
  return uids.length === 0 ? {} : { wakes: uids.map((uid) => ({ value: uid, label: uid })) };
}
