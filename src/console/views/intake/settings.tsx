import { useState } from "preact/hooks";
import { api, type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Select, TextArea, TextField, toLines } from "../../kit/form/field.tsx";
import { Form, FormFoot } from "../../kit/form/form.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";

type Preset = Schemas["Preset"];

interface Props {
  readonly blueprint: Schemas["Blueprint"];
  /** `undefined` to create the intake. */
  readonly intake: Schemas["Intake"] | undefined;
  readonly onClose: () => void;
  readonly onSaved: () => void;
}

/** Form of an intake. A new intake gets the route keys that the preset of its channel declares. */
export function IntakeSettings(props: Props) {
  const { blueprint, intake, onClose } = props;
  const channels = blueprint.channels.filter(({ kind }) => kind === "webhook");
  const [uid, setUid] = useState(intake?.channel ?? channels[0]?.uid ?? "");
  const config: Readonly<Record<string, unknown>> | undefined =
    intake?.config ?? channels.find((channel) => channel.uid === uid)?.config;
  const name = config?.preset;
  const loaded = useLoad(
    async (signal): Promise<{ readonly preset?: Preset }> =>
      typeof name === "string"
        ? { preset: await api.get("/presets/{name}", { path: { name }, signal }) }
        : {},
    [name],
  );
  return (
    <Dialog title={intake === undefined ? "Create an intake" : "Settings of the intake"} onClose={onClose}>
      {intake === undefined && (
        <Select
          label="Channel"
          help="Channel of each install that receives the items."
          value={uid}
          options={channels.map((channel) => ({ value: channel.uid, label: channel.uid }))}
          onChange={setUid}
        />
      )}
      <WhenLoaded loaded={loaded} lines={2}>
        {({ preset }) => <Fields key={`${uid} ${preset?.preset}`} {...props} uid={uid} preset={preset} />}
      </WhenLoaded>
    </Dialog>
  );
}

interface FieldsProps extends Props {
  readonly uid: string;
  readonly preset: Preset | undefined;
}

function Fields({ blueprint, intake, uid, preset, onClose, onSaved }: FieldsProps) {
  const declared = preset?.intake;
  const [paths, setPaths] = useState((intake?.routeBy ?? declared?.routeBy ?? []).join("\n"));
  const [secret, setSecret] = useState("");
  const [trustUnsigned, setTrustUnsigned] = useState(
    intake?.trustUnsigned ?? declared?.trustUnsigned ?? false,
  );
  const path = `/blueprints/${blueprint.id}/intake`;
  const body = {
    channel: uid,
    routeBy: toLines(paths),
    trustUnsigned,
    config: {
      ...(intake === undefined && preset && { preset: preset.preset }),
      ...(intake === undefined && declared?.itemsPath !== undefined && { itemsPath: declared.itemsPath }),
      ...(trustUnsigned && { verification: { bindDedupe: "signedBytes" } }),
      ...(secret !== "" && { secrets: [{ value: secret }] }),
    },
  };
  const save = useAction(async () => {
    await send("PUT", path, { body });
    toast("Saved. All workers use the change within two seconds.");
    onSaved();
    onClose();
  });
  // The equivalent API call must not show the secret.
  const shown = secret === "" ? body : { ...body, config: { ...body.config, secrets: [{ value: "…" }] } };
  return (
    <Form onSubmit={save.run}>
      <TextArea
        label="Route key, one path per line"
        help="The first path that finds a value decides, such as $.team_id. Only read values that the provider signs."
        rows={3}
        required
        value={paths}
        onChange={setPaths}
      />
      {intake === undefined && declared !== undefined && declared.notes.length > 0 && (
        <ul class="notes">
          {declared.notes.map((note) => (
            <li key={note}>
              <UntrustedText>{note}</UntrustedText>
            </li>
          ))}
        </ul>
      )}
      <TextField
        label={preset?.secret?.label ?? "Secret"}
        help={`${preset?.secret?.hint ?? ""} Inlet stores it encrypted. Leave it empty to keep the stored one.`}
        type="password"
        value={secret}
        onChange={setSecret}
      />
      <label class="row">
        <input
          type="checkbox"
          checked={trustUnsigned}
          onChange={(event) => setTrustUnsigned(event.currentTarget.checked)}
        />
        <span>Accept route keys that the provider does not sign</span>
      </label>
      <FormFoot
        action={save}
        call={{ method: "PUT", path, body: shown }}
        verb={intake === undefined ? "Create" : "Save"}
        onCancel={onClose}
      />
    </Form>
  );
}
