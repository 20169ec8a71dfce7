import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import {
  type ApiCall,
  type ChannelTemplate,
  composeAddition,
  composeBlueprint,
  composeInstall,
  type OwnSettings,
} from "../../../channels/compose-channel.ts";
import { type Schemas, send } from "../../api/client.ts";
import { type Action, useAction } from "../../api/use-action.ts";
import { Select, TextField } from "../../kit/form/field.tsx";
import { apps, reloadApps, SYSTEM_APP, useAppId } from "../../kit/layout/apps.tsx";
import { hasPermission } from "../../session/session.ts";

export interface MadeChannel {
  readonly app: string;
  readonly channel: string;
}

interface Creation {
  readonly call: ApiCall;
  readonly action: Action<[], void>;
  readonly appField: ComponentChildren;
}

const NEW_APP = "";

/** Hook that creates a channel in an existing app or in a new one. `appField` lets the user choose the app. */
export function useCreation(
  channel: ChannelTemplate,
  settings: OwnSettings,
  onMade: (made: MadeChannel) => void,
): Creation {
  const known = (apps.value ?? []).filter(({ uid }) => uid !== SYSTEM_APP);
  const current = useAppId();
  const mayInstall = hasPermission("blueprints.write");
  const [appId, setAppId] = useState(
    known.some(({ id }) => id === current) ? current : mayInstall ? NEW_APP : (known[0]?.id ?? NEW_APP),
  );
  // Random suffix for uids, so that the user can set up the same provider more than once.
  const [suffix] = useState(() => Math.random().toString(36).slice(2, 8));
  const { uid, title } = channel;
  const isNew = appId === NEW_APP || appId === undefined;
  const call = isNew
    ? composeBlueprint(`${uid}-${suffix}`, title, channel)
    : composeAddition(appId, channel, settings);
  const install = async (blueprintId: string): Promise<string> => {
    const { method, path, body } = composeInstall(blueprintId, uid, settings);
    const app = await send<Schemas["App"]>(method, path, { body }).catch(async (error) => {
      // The user can correct the settings and try again, which creates the blueprint again. The first error is the one to show.
      await send("DELETE", `/blueprints/${blueprintId}`).catch(() => {});
      throw error;
    });
    await reloadApps();
    return app.id;
  };
  const action = useAction(async () => {
    const { id } = await send<{ readonly id: string }>(call.method, call.path, call);
    onMade({ app: isNew ? await install(id) : appId, channel: uid });
  });
  const appField = (
    <Select
      label="App"
      value={appId ?? NEW_APP}
      options={[
        ...(mayInstall ? [{ value: NEW_APP, label: "a new one" }] : []),
        ...known.map(({ id, uid: name }) => ({ value: id, label: name })),
      ]}
      onChange={setAppId}
    />
  );
  return { call, action, appField };
}

interface NameProps {
  readonly value: string;
  readonly onChange: (uid: string) => void;
}

export const ChannelName = ({ value, onChange }: NameProps) => (
  <TextField
    label="Name of the channel"
    required
    pattern="[A-Za-z0-9_\-]{1,64}"
    value={value}
    onChange={onChange}
  />
);
