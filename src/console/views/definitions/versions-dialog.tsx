import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { useGet, useList } from "../../api/use-load.ts";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Select } from "../../kit/form/field.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Time } from "../../kit/text/time.tsx";

type Version = Schemas["SchemaVersion"];

interface Props {
  readonly appId: string;
  readonly channelUid: string;
  /** Puts a schema into the editor. */
  readonly onApply: (type: string, schema: object | boolean) => void;
  readonly onClose: () => void;
}

const MAX_VERSIONS = 200;

/** Dialog that lists the stored versions of the definitions' schemas, and restores one. */
export function VersionsDialog({ appId, channelUid, onApply, onClose }: Props) {
  const [chosen, setChosen] = useState(0);
  const loaded = useList("/apps/{appId}/channels/{channelId}/schemas", {
    path: { appId, channelId: channelUid },
    query: { limit: MAX_VERSIONS },
  });
  return (
    <Dialog title="Schema versions" onClose={onClose} wide>
      <WhenLoaded loaded={loaded} lines={6}>
        {({ rows }) => {
          const shown = rows[chosen];
          if (shown === undefined) {
            return (
              <Empty title="No schema">
                <p>No definition of the channel has had a schema.</p>
              </Empty>
            );
          }
          return (
            <div class="stack">
              <Select
                label="Event type and version"
                value={chosen}
                options={rows.map(({ type, version, isCurrent }, at) => ({
                  value: String(at),
                  label: `${type}, version ${version}${isCurrent ? " (current)" : ""}`,
                }))}
                onChange={(at) => setChosen(Number(at))}
              />
              <p>
                Stored <Time at={shown.createdAt} />. <code>dataschema</code> of its events ends with{" "}
                <code>/{shown.version}</code>.
              </p>
              <VersionText
                key={`${shown.type} ${shown.version}`}
                appId={appId}
                channelUid={channelUid}
                shown={shown}
                onApply={onApply}
              />
            </div>
          );
        }}
      </WhenLoaded>
    </Dialog>
  );
}

interface TextProps extends Omit<Props, "onClose"> {
  readonly shown: Version;
}

function VersionText({ appId, channelUid, shown, onApply }: TextProps) {
  const { type, version } = shown;
  const loaded = useGet("/apps/{appId}/channels/{channelId}/schemas/{type}/{version}", {
    path: { appId, channelId: channelUid, type, version: String(version) },
  });
  const path = `/apps/${appId}/channels/${channelUid}/schemas/${encodeURIComponent(type)}/${version}`;
  return (
    <WhenLoaded loaded={loaded} lines={6}>
      {(schema) => (
        <>
          <Code text={JSON.stringify(schema, null, 2)} label="Schema" />
          <div class="row wrap">
            <Button look="primary" onClick={() => onApply(type, schema)}>
              Apply to the editor
            </Button>
            <ApiCall call={{ method: "GET", path }} />
          </div>
        </>
      )}
    </WhenLoaded>
  );
}
