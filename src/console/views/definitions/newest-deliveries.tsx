import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Schemas } from "../../api/client.ts";
import { useGet } from "../../api/use-load.ts";
import { ExplainedItems } from "../../kit/explained/explained-items.tsx";
import { Empty, ErrorNote, Loading, WhenLoaded } from "../../kit/feedback/states.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { SmallTable } from "../../kit/list/small-table.tsx";
import { decodeBase64 } from "../../kit/text/base64.ts";
import { formatCount } from "../../kit/text/numbers.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import type { Pickable } from "./delivery-fields.ts";
import { type PreviewProps, useTried } from "./use-tried.ts";

type Preview = Schemas["DeliveriesPreview"];

interface Props extends PreviewProps {
  /** Renders the fields of a delivery, so that they can be picked. */
  readonly fieldsOf: (delivery: Pickable) => ComponentChildren;
}

/** Compares the newest deliveries with their original results. */
export function NewestDeliveries({ appId, channelUid, events, onErrors, fieldsOf }: Props) {
  const body = events && { channelId: channelUid, events };
  const { result, error } = useTried<Preview>(`/apps/${appId}/deliveries/preview`, body, onErrors);
  if (error) return <ErrorNote error={error} />;
  if (result === undefined) return <Loading lines={4} />;
  if (result.examined === 0) {
    return (
      <Empty title="No recorded delivery has a body">
        <p>
          Records of each channel's newest deliveries are stored for a day, with bodies up to 128 KiB. Use the
          sample, or paste a body.
        </p>
      </Empty>
    );
  }
  const changed = result.items.filter(({ isChanged }) => isChanged);
  return (
    <div class="stack" role="status">
      <p>
        Compared with the newest {formatCount(result.examined)} deliveries,{" "}
        {changed.length === 0
          ? "all would have the same result."
          : `${formatCount(changed.length)} would have a different result.`}
      </p>
      <Counts title="Events" counts={result.events} tone="ok" />
      <Counts title="Failures" counts={result.failures} tone="warn" />
      <ol class="previewed" aria-label="Previewed deliveries">
        {[...changed, ...result.items.filter(({ isChanged }) => !isChanged)].map((item) => (
          <PreviewedDelivery key={item.id} appId={appId} item={item} fieldsOf={fieldsOf} />
        ))}
      </ol>
    </div>
  );
}

interface PreviewedProps extends Pick<Props, "appId" | "fieldsOf"> {
  readonly item: Preview["items"][number];
}

/** A row with the event types and failures of a delivery. It expands to the steps of each item and the fields of the body. */
function PreviewedDelivery({ appId, item: { id, isChanged, explanation }, fieldsOf }: PreviewedProps) {
  const [isOpen, setOpen] = useState(false);
  const types = [...new Set(explanation.flatMap(({ events }) => events.map(({ type }) => type)))];
  const reasons = [...new Set(explanation.flatMap(({ failures }) => failures.map(({ reason }) => reason)))];
  return (
    <li>
      <details class="tried" onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <code>{id}</code>
          {types.map((type) => (
            <Badge key={type} tone="ok">
              <UntrustedText max={80}>{type}</UntrustedText>
            </Badge>
          ))}
          {reasons.map((reason) => (
            <Badge key={reason} tone="warn">
              {reason}
            </Badge>
          ))}
          {types.length + reasons.length === 0 && <Badge tone="plain">ignored</Badge>}
          {isChanged && <Badge tone="info">changed</Badge>}
        </summary>
        {isOpen && (
          <div class="stack">
            <ExplainedItems items={explanation} />
            <RecordedFields appId={appId} deliveryId={id} fieldsOf={fieldsOf} />
          </div>
        )}
      </details>
    </li>
  );
}

interface RecordedProps extends Pick<Props, "appId" | "fieldsOf"> {
  readonly deliveryId: string;
}

function RecordedFields({ appId, deliveryId, fieldsOf }: RecordedProps) {
  const loaded = useGet("/apps/{appId}/deliveries/{deliveryId}", { path: { appId, deliveryId } });
  return (
    <WhenLoaded loaded={loaded}>
      {({ headers, bodyBase64 }) => (
        <>{fieldsOf({ headers, body: new TextDecoder().decode(decodeBase64(bodyBase64 ?? "")) })}</>
      )}
    </WhenLoaded>
  );
}

interface CountsProps {
  readonly title: string;
  readonly counts: Preview["events"];
  readonly tone: "ok" | "warn";
}

function Counts({ title, counts, tone }: CountsProps) {
  if (counts.length === 0) return null;
  return (
    <SmallTable head={[title, "then", "now"]}>
      {counts.map(({ name, before, after }) => (
        <tr key={name}>
          <th scope="row">
            <UntrustedText max={200}>{name}</UntrustedText>
          </th>
          <td>{formatCount(before)}</td>
          <td>{before === after ? formatCount(after) : <Badge tone={tone}>{formatCount(after)}</Badge>}</td>
        </tr>
      ))}
    </SmallTable>
  );
}
