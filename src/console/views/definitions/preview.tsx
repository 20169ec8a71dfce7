import { useState } from "preact/hooks";
import type { ErrorDetail } from "../../api/api-error.ts";
import { api, type Schemas } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { ExplainedItems } from "../../kit/explained/explained-items.tsx";
import { ErrorNote, Loading } from "../../kit/feedback/states.tsx";
import { TextArea } from "../../kit/form/field.tsx";
import { hasPermission } from "../../session/session.ts";
import { NewestDeliveries } from "./newest-deliveries.tsx";
import { PathPicker } from "./path-picker.tsx";
import type { PathField, PathTarget } from "./path-target.ts";
import { type PreviewProps, useTried } from "./use-tried.ts";

type Explanation = Schemas["Explanation"];

interface Props {
  readonly appId: string;
  readonly channel: Schemas["Channel"];
  /** `undefined` while the typed text is invalid. */
  readonly events: readonly unknown[] | undefined;
  readonly target: PathTarget;
  readonly onTarget: (target: PathTarget) => void;
  /** Called with the path of a clicked field. */
  readonly onPick: (path: string) => void;
  /** Called with the errors of the definitions after each preview. */
  readonly onErrors: (errors: readonly ErrorDetail[]) => void;
}

const SOURCES = ["Newest deliveries", "Provider's sample", "Pasted body"] as const;
type Source = (typeof SOURCES)[number];

/** Shows what event definitions produce from the newest deliveries, the provider's sample or a pasted body. */
export function TryOn({ appId, channel, events, target, onTarget, onPick, onErrors }: Props) {
  const [source, setSource] = useState<Source>("Newest deliveries");
  const [pasted, setPasted] = useState("");
  const preset = hasPermission("presets.read") ? textOf(channel.config, "preset") : undefined;
  const loaded = useLoad(
    async (signal) =>
      preset === undefined ? undefined : api.get("/presets/{name}", { path: { name: preset }, signal }),
    [preset],
  );
  const given = source === "Pasted body" ? { headers: {}, body: pasted } : loaded.data?.sample;
  const picking = {
    kind: channel.kind,
    itemsPath: textOf(channel.config, "itemsPath") ?? loaded.data?.itemsPath ?? undefined,
    target,
    onTarget: (field: PathField) => onTarget({ ...target, field }),
    onPick,
  };
  const shared = { appId, channelUid: channel.uid, events, onErrors };
  // CloudEvents have fixed places.
  const hasPaths = channel.kind !== "cloudevents";
  const shown = SOURCES.filter((one) => one !== "Provider's sample" || preset !== undefined);
  return (
    <section class="stack" aria-label="Preview">
      <div class="segments" role="group" aria-label="Preview input">
        {shown.map((one) => (
          <button key={one} type="button" aria-pressed={one === source} onClick={() => setSource(one)}>
            {one}
          </button>
        ))}
      </div>
      {source === "Pasted body" && (
        <TextArea label="Body of a delivery" rows={6} value={pasted} onChange={setPasted} />
      )}
      {source === "Newest deliveries" ? (
        <NewestDeliveries
          {...shared}
          fieldsOf={(delivery) => hasPaths && <PathPicker {...picking} delivery={delivery} />}
        />
      ) : (
        given && (
          <>
            {hasPaths && <PathPicker {...picking} delivery={given} />}
            <OnOne {...shared} given={given} />
          </>
        )
      )}
    </section>
  );
}

function textOf(config: object, name: string): string | undefined {
  const value: unknown = Reflect.get(config, name);
  return typeof value === "string" ? value : undefined;
}

function OnOne({
  appId,
  channelUid,
  events,
  given,
  onErrors,
}: PreviewProps & { readonly given: { readonly headers: object; readonly body: string } }) {
  const { headers, body: text } = given;
  const body = events && { headers, body: text, verify: false, events };
  const path = `/apps/${appId}/channels/${channelUid}/explain`;
  const { result, error } = useTried<Explanation>(path, body, onErrors);
  if (error) return <ErrorNote error={error} />;
  if (result === undefined) return <Loading lines={4} />;
  return (
    <div role="status">
      <ExplainedItems items={result.items} />
    </div>
  );
}
