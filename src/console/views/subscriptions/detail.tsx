import { useState } from "preact/hooks";
import { api, type Schemas, send } from "../../api/client.ts";
import { useAction } from "../../api/use-action.ts";
import { useLoad } from "../../api/use-load.ts";
import { Confirm } from "../../kit/feedback/confirm.tsx";
import { ErrorNote, LastError, WhenLoaded } from "../../kit/feedback/states.tsx";
import { toast } from "../../kit/feedback/toast.tsx";
import { Button } from "../../kit/layout/button.tsx";
import { DetailPanel } from "../../kit/layout/detail.tsx";
import { Badge, Facts } from "../../kit/layout/page.tsx";
import { ApiCall } from "../../kit/text/api-call.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { formatBytes, formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { SUBSCRIPTION_TONES } from "../../kit/text/tones.ts";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { hasPermission } from "../../session/session.ts";
import { Replay } from "./replay.tsx";
import { Rewind } from "./rewind.tsx";

type Subscription = Schemas["Subscription"];
type Batch = NonNullable<NonNullable<Subscription["handler"]>["batch"]>;

interface Props {
  readonly appId: string;
  readonly subscriptionId: string;
  readonly onClose: () => void;
  readonly onChanged: () => void;
}

const REFRESH_MS = 5_000;

export function SubscriptionDetail({ appId, subscriptionId, onClose, onChanged }: Props) {
  const loaded = useLoad(
    (signal) =>
      api.get("/apps/{appId}/subscriptions/{subscriptionId}", { path: { appId, subscriptionId }, signal }),
    [appId, subscriptionId],
    { everyMs: REFRESH_MS },
  );
  const changed = (): void => {
    loaded.reload();
    onChanged();
  };
  return (
    <DetailPanel title="Subscription" onClose={onClose}>
      <WhenLoaded loaded={loaded}>
        {(subscription) => (
          <>
            <Standing subscription={subscription} />
            {hasPermission("apps.write") && (
              <Actions
                subscription={subscription}
                onChanged={changed}
                onDeleted={() => {
                  onClose();
                  onChanged();
                }}
              />
            )}
            <HowToRead subscription={subscription} />
            <ApiCall call={{ method: "GET", path: `/apps/${appId}/subscriptions/${subscriptionId}` }} />
          </>
        )}
      </WhenLoaded>
    </DetailPanel>
  );
}

function Standing({ subscription }: { readonly subscription: Subscription }) {
  const { id, appId, eventUid, state, startAt, handler, lastError, lag, lagSeconds, pending, deadLetters } =
    subscription;
  return (
    <>
      {lastError && <LastError error={lastError} isBad={state === "failing"} />}
      <Facts
        facts={{
          Events: <UntrustedText>{eventUid}</UntrustedText>,
          State: <Badge tone={SUBSCRIPTION_TONES[state]}>{state}</Badge>,
          "Not read yet": known(lag, formatCount),
          "Age of the oldest": known(lagSeconds, (seconds) =>
            seconds === 0 ? "–" : formatDuration(seconds * 1_000),
          ),
          "Read, not acknowledged": known(pending, formatCount),
          "Dead letters": deadLetters ? (
            <a href={`/console/dead-letters?app=${appId}&subscription=${id}`}>{formatCount(deadLetters)}</a>
          ) : (
            known(deadLetters, formatCount)
          ),
          "Start position": /^\d/.test(startAt) ? <Time at={startAt} /> : startAt,
          "Id and consumer group": <Copyable text={id} what="id" />,
        }}
      />
      {handler && (
        <Facts
          facts={{
            "Sent to": <UntrustedText>{handler.url}</UntrustedText>,
            Concurrency: String(handler.concurrency),
            Order: ORDERS[String(handler.ordered) as keyof typeof ORDERS],
            "Events per request": handler.batch === null ? "1" : formatBatch(handler.batch),
            Timeout: formatDuration(handler.timeoutMs),
          }}
        />
      )}
    </>
  );
}

const formatBatch = ({ maxEvents, maxBytes, maxWaitMs }: Batch): string =>
  `up to ${formatCount(maxEvents)}, ${formatBytes(maxBytes)}, after ${formatDuration(maxWaitMs)}`;

const ORDERS = { false: "not guaranteed", true: "per topic", key: "per key" } as const;

const known = (value: number | null, format: (value: number) => string): string =>
  value === null ? "not known" : format(value);

interface ActionsProps {
  readonly subscription: Subscription;
  readonly onChanged: () => void;
  readonly onDeleted: () => void;
}

type Asked = "rewind" | "replay" | "delete";

function Actions({ subscription, onChanged, onDeleted }: ActionsProps) {
  const { appId, id, state, handler, eventUid } = subscription;
  const path = `/apps/${appId}/subscriptions/${id}`;
  const [asked, setAsked] = useState<Asked>();
  const close = (): void => setAsked(undefined);
  const turn = state === "paused" ? "resume" : "pause";
  const toggle = useAction(async () => {
    await send("POST", `${path}/${turn}`, { body: {} });
    toast(turn === "pause" ? "Paused. It keeps its position." : "Resumed.");
    onChanged();
  });
  return (
    <>
      <div class="row wrap">
        <Button disabled={toggle.isRunning} onClick={() => void toggle.run()}>
          {turn === "pause" ? "Pause" : "Resume"}
        </Button>
        <Button onClick={() => setAsked("rewind")}>Rewind</Button>
        {handler && <Button onClick={() => setAsked("replay")}>Replay</Button>}
        <Button look="delete" onClick={() => setAsked("delete")}>
          Delete
        </Button>
      </div>
      {toggle.error && <ErrorNote error={toggle.error} />}
      {asked === "rewind" && <Rewind subscription={subscription} onClose={close} onDone={onChanged} />}
      {asked === "replay" && <Replay subscription={subscription} onClose={close} />}
      {asked === "delete" && (
        <Confirm
          title="Delete this subscription?"
          verb="Delete"
          danger
          call={{ method: "DELETE", path }}
          onClose={close}
          onDone={() => {
            toast("Deleted.");
            onDeleted();
          }}
        >
          <p>
            This deletes its position on <UntrustedText>{eventUid}</UntrustedText> and its dead letters. The
            events stay on their topics.
          </p>
        </Confirm>
      )}
    </>
  );
}

/** Shows how a program can read the events of a subscription that has no handler. */
function HowToRead({ subscription }: { readonly subscription: Subscription }) {
  const { id, topics, handler } = subscription;
  const [topic] = topics;
  if (handler) return null;
  const library = `import { createConsumer } from "inlet-consumer";

const consumer = createConsumer({ redis: process.env.REDIS_URL, subscription: "${id}" });
await consumer.run(async (event) => {
  console.log(event.type, event.data);
});`;
  return (
    <>
      <Code text={library} label="with the library" />
      {topic !== undefined && (
        <Code
          text={`XREADGROUP GROUP ${id} reader-1 COUNT 10 STREAMS '${topic}' '>'`}
          label="with any Redis client"
          wrap
        />
      )}
    </>
  );
}
