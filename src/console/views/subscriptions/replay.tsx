import { useState } from "preact/hooks";
import { type Schemas, send } from "../../api/client.ts";
import { useLoad } from "../../api/use-load.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { ErrorNote } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { LocalTimeInput } from "../../kit/form/local-time.tsx";
import { formatCount } from "../../kit/text/numbers.ts";

type Replayed = Schemas["Replay"];

interface Props {
  readonly subscription: Schemas["Subscription"];
  readonly onClose: () => void;
}

const HOUR_MS = 3_600_000;

/** Dialog that sends past events to the subscription's handler again. New events are still delivered meanwhile. */
export function Replay({ subscription, onClose }: Props) {
  const { appId, id } = subscription;
  const path = `/apps/${appId}/subscriptions/${id}/replay`;
  const [from, setFrom] = useState(() => new Date(Date.now() - HOUR_MS).toISOString());
  const [to, setTo] = useState(() => new Date().toISOString());
  const body = { from, to };
  const { data: counted, error } = useLoad(
    (signal) => send<Replayed>("POST", path, { body: { ...body, dryRun: true }, signal }),
    [path, from, to],
  );

  /** Sends requests until all events are queued. Each request continues where the previous one ended. */
  async function replay(): Promise<void> {
    let sent = 0;
    let after: string | null = null;
    do {
      const answer: Replayed = await send("POST", path, { body: after === null ? body : { ...body, after } });
      sent += answer.replayed;
      after = answer.next;
    } while (after !== null);
    toast(`${formatCount(sent)} events are sent to the handler again.`);
  }

  return (
    <Confirm
      title="Replay to this handler"
      verb={counted ? `Replay ${formatCount(counted.matched)}` : "Replay"}
      call={{ method: "POST", path, body }}
      onClose={onClose}
      act={replay}
    >
      <div class="stack">
        <p>Only this handler receives the events again. Other readers are not affected.</p>
        {(
          [
            ["From", from, setFrom],
            ["Up to", to, setTo],
          ] as const
        ).map(([label, value, set]) => (
          <div key={label} class="field">
            <span class="field-name">{label} (your time zone)</span>
            <LocalTimeInput label={label} value={value} onChange={(utc) => utc && set(utc)} />
          </div>
        ))}
        {error && <ErrorNote error={error} />}
        <p role="status">
          {counted === undefined ? "Counting …" : `${formatCount(counted.matched)} events are in this range.`}
        </p>
      </div>
    </Confirm>
  );
}
