import { useState } from "preact/hooks";
import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { Tally } from "../../kit/failures/batch-dialog.tsx";
import { Dialog } from "../../kit/feedback/dialog.tsx";
import { Empty, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Select } from "../../kit/form/field.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { SmallTable } from "../../kit/list/small-table.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";

const DRIFT_WORDS = {
  missing_field: "field is missing",
  new_field: "new field",
  type_changed: "other type",
} as const satisfies Readonly<Record<Inferred["drift"][number]["kind"], string>>;

type Inferred = Schemas["SchemaInference"]["types"][number];

interface Props {
  readonly appId: string;
  readonly channelUid: string;
  /** Puts a schema into the editor. */
  readonly onApply: (type: string, schema: object) => void;
  readonly onClose: () => void;
}

/** Dialog that infers schemas from the channel's newest events and quarantined items. */
export function InferDialog({ appId, channelUid, onApply, onClose }: Props) {
  const [chosen, setChosen] = useState<string>();
  const path = `/apps/${appId}/channels/${channelUid}/definitions/infer`;
  const loaded = useLoad(
    (signal) =>
      api.post("/apps/{appId}/channels/{channelId}/definitions/infer", {
        path: { appId, channelId: channelUid },
        body: {},
        signal,
      }),
    [path],
  );
  return (
    <Dialog title="Create schema from events" onClose={onClose} wide>
      <WhenLoaded loaded={loaded} lines={6}>
        {({ types, isCut }) => {
          const shown = types.find(({ type }) => type === chosen) ?? types[0];
          if (shown === undefined) {
            return (
              <Empty title="No data to infer a schema from">
                <p>The channel has no events, and no quarantined items that failed a schema.</p>
              </Empty>
            );
          }
          return (
            <div class="stack">
              <Select
                label="Event type"
                value={shown.type}
                options={types.map(({ type }) => ({ value: type, label: type }))}
                onChange={setChosen}
              />
              <Facts inferred={shown} isCut={isCut} />
              <Code text={JSON.stringify(shown.schema, null, 2)} label="Inferred schema" />
              <ApiCall call={{ method: "POST", path, body: {} }} />
              <div class="row end foot">
                <Button onClick={onClose}>Cancel</Button>
                <Button look="primary" onClick={() => onApply(shown.type, shown.schema)}>
                  Apply to the editor
                </Button>
              </div>
            </div>
          );
        }}
      </WhenLoaded>
    </Dialog>
  );
}

function Facts({ inferred, isCut }: { readonly inferred: Inferred; readonly isCut: boolean }) {
  const { events, quarantined, failing, violations, drift, released } = inferred;
  return (
    <>
      <Tally
        results={[
          ["events", events, ""],
          ["quarantined items", quarantined, ""],
          ["fail the current schema", failing ?? "no schema", "bad"],
          ["the new schema would release", released.length, "ok"],
        ]}
      />
      {violations.length > 0 && (
        <SmallTable head={["Path", "Current schema", "Failures"]}>
          {violations.slice(0, 5).map(({ path, message, count }) => (
            <tr key={`${path} ${message}`}>
              <th scope="row">
                <UntrustedText max={100}>{path || "(the data)"}</UntrustedText>
              </th>
              <td>
                <UntrustedText max={100}>{message}</UntrustedText>
              </td>
              <td>{formatCount(count)}</td>
            </tr>
          ))}
        </SmallTable>
      )}
      {drift.length > 0 && (
        <SmallTable head={["Path", "Difference from the current schema", "Events and items"]}>
          {drift.slice(0, 10).map(({ kind, grade, path, count }) => (
            <tr key={`${kind} ${grade} ${path}`}>
              <th scope="row">
                <UntrustedText max={100}>{path || "(the data)"}</UntrustedText>
              </th>
              <td>
                {DRIFT_WORDS[kind]} <Badge tone={grade === "breaking" ? "bad" : "plain"}>{grade}</Badge>
              </td>
              <td>{formatCount(count)}</td>
            </tr>
          ))}
        </SmallTable>
      )}
      {isCut && <p class="note warn">The sample ended early because it would exceed 16 MiB.</p>}
    </>
  );
}
