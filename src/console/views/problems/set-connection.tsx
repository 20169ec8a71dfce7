import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useList } from "../../api/use-load.ts";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Form, FormFoot } from "../../kit/form/form.tsx";
import { SchemaForm } from "../../kit/form/schema-form.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";

interface Props {
  readonly channel: Schemas["Channel"];
  readonly onClose: () => void;
  readonly onDone: () => void;
}

const SCHEMA = {
  type: "object",
  properties: { connectionId: { type: "string", title: "Connection" } },
  required: ["connectionId"],
} as const;

/** Returns the origin that a source calls. `undefined` if its preset determines the origin. */
function findOrigin({ url, request }: Readonly<Record<string, unknown>>): string | undefined {
  const called = (request as { readonly url?: unknown } | undefined)?.url ?? url;
  return URL.parse(String(called))?.origin;
}

/** Dialog that selects the connection of a channel. */
export function SetConnection({ channel, onClose, onDone }: Props) {
  const [value, setValue] = useState<unknown>(
    channel.connectionId === null ? {} : { connectionId: channel.connectionId },
  );
  const loaded = useList("/connections", { query: { limit: 200 } });
  const origin = findOrigin(channel.config);
  const call = { method: "PUT", path: `/apps/${channel.appId}/channels/${channel.uid}`, body: value };
  const action = useAction(async () => {
    await send(call.method, call.path, call);
    toast("Saved. All workers use the change within two seconds.");
    onDone();
  });
  return (
    <Dialog title={`Connection of ${channel.uid}`} onClose={onClose}>
      <WhenLoaded loaded={loaded}>
        {({ rows }) => (
          <Form onSubmit={action.run}>
            <SchemaForm
              schema={SCHEMA}
              choices={{
                connectionId: rows
                  .filter(({ allowedOrigins }) => origin === undefined || allowedOrigins.includes(origin))
                  .map(({ id, name }) => ({ value: id, label: name })),
              }}
              value={value}
              onChange={setValue}
              details={action.error?.details ?? []}
            />
            <p class="field-help">
              <MaybeLink href={viewHref("/connections")}>Make a new connection</MaybeLink>
            </p>
            <FormFoot action={action} call={call} verb="Save" onCancel={onClose} />
          </Form>
        )}
      </WhenLoaded>
    </Dialog>
  );
}
