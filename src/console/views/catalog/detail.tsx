import { loadVersioned, type Schemas, send } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { useAction } from "../../api/use-action.ts";
import { ErrorNote } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Facts, Section } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Payload } from "../../kit/text/payload.tsx";
import { Time } from "../../kit/text/time.tsx";
import { hasPermission } from "../../session/session.ts";

type Entry = Schemas["CatalogEntry"];

interface Props {
  readonly appId: string;
  readonly entry: Entry;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

const EXAMPLE_TITLES = {
  delivery: "Example from the newest stored delivery",
  preset: "Example from the provider's sample",
} as const;

/** Panel with the schema and an example of an event type, and the switch that offers the type to agents. */
export function CatalogDetail({ appId, entry, onClose, onChanged }: Props) {
  const { channelUid, type, topic, schema, example, exampleSource, lastSeenAt } = entry;
  return (
    <DetailPanel title={type} onClose={onClose}>
      <Facts
        facts={{
          Channel: channelUid,
          "Last seen": <Time at={lastSeenAt} as="ago" />,
        }}
      />
      <Code text={topic} label="topic" title="Topic" wrap />
      <AgentsSwitch appId={appId} entry={entry} onChanged={onChanged} />
      <div class="row wrap">
        <a class="button" href={`/console/apps/${appId}/channels/${channelUid}/definitions`}>
          Definitions
        </a>
        <a class="button" href={`/console/events${formatQuery({ app: appId, channel: channelUid, type })}`}>
          Events
        </a>
      </div>
      <Section title="Schema">
        {schema === null ? (
          <p class="faint">The definition has no schema, so any data is published.</p>
        ) : (
          <Payload content={JSON.stringify(schema)} label="schema" fileName="schema.json" />
        )}
      </Section>
      <Section title={exampleSource === null ? "Example" : EXAMPLE_TITLES[exampleSource]}>
        {exampleSource === null ? (
          <p class="faint">
            {hasPermission("deliveries.read")
              ? "No stored delivery or sample contains an event of this type."
              : "Examples need the permission deliveries.read."}
          </p>
        ) : (
          <Payload content={JSON.stringify(example)} label="example" fileName="example.json" />
        )}
      </Section>
      <ApiCall call={{ method: "GET", path: `/apps/${appId}/catalog?channel=${channelUid}` }} />
    </DetailPanel>
  );
}

function AgentsSwitch({ appId, entry, onChanged }: Pick<Props, "appId" | "entry" | "onChanged">) {
  const { channelUid, type, agents } = entry;
  const path = `/apps/${appId}/channels/${channelUid}`;
  const change = useAction(async () => {
    const { entity, etag } = await loadVersioned<Schemas["Channel"]>(path, AbortSignal.timeout(30_000));
    const events = entity.events.map((one) => (one.type === type ? { ...one, agents: !agents } : one));
    await send("PUT", path, { body: { events }, headers: etag === undefined ? {} : { "if-match": etag } });
    toast(agents ? "Agents can no longer subscribe to this type." : "Agents may subscribe to this type.");
    onChanged();
  });
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={change.isRunning ? !agents : agents}
          disabled={change.isRunning || !hasPermission("apps.write")}
          onChange={() => void change.run()}
        />
        <span>AI agents may subscribe to this type</span>
      </label>
      {change.error && <ErrorNote error={change.error} />}
    </>
  );
}
