import type { Schemas } from "../../api/client.ts";
import { DialogButton, PauseButton } from "../../kit/feedback/buttons.tsx";
import { Badge, type NamedFacts } from "../../kit/layout/page.tsx";
import { Code } from "../../kit/text/code.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { formatBytes, formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { SUBSCRIPTION_TONES } from "../../kit/text/tones.ts";
import { Replay } from "./replay.tsx";
import { Rewind } from "./rewind.tsx";

type Subscription = Schemas["Subscription"];
type Batch = NonNullable<NonNullable<Subscription["handler"]>["batch"]>;

export const factsOf = (subscription: Subscription): NamedFacts => {
  const { id, appId, eventUid, state, startAt, handler, lag, lagSeconds, pending, deadLetters } =
    subscription;
  return {
    Events: eventUid,
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
    ...(handler && {
      "Sent to": handler.url,
      Concurrency: String(handler.concurrency),
      Order: ORDERS[String(handler.ordered) as keyof typeof ORDERS],
      "Events per request": handler.batch === null ? "1" : formatBatch(handler.batch),
      Timeout: formatDuration(handler.timeoutMs),
    }),
  };
};

const formatBatch = ({ maxEvents, maxBytes, maxWaitMs }: Batch): string =>
  `up to ${formatCount(maxEvents)}, ${formatBytes(maxBytes)}, after ${formatDuration(maxWaitMs)}`;

const ORDERS = { false: "not guaranteed", true: "per topic", key: "per key" } as const;

const known = (value: number | null, format: (value: number) => string): string =>
  value === null ? "not known" : format(value);

interface ActionsProps {
  readonly subscription: Subscription;
  readonly onChanged: () => void;
}

/** Buttons that change a subscription. */
export const SubscriptionActions = ({ subscription, onChanged }: ActionsProps) => (
  <>
    <PauseButton
      path={`/apps/${subscription.appId}/subscriptions/${subscription.id}`}
      isPaused={subscription.state === "paused"}
      effect="It keeps its position."
      onDone={onChanged}
    />
    <DialogButton label="Rewind">
      {(onClose) => <Rewind subscription={subscription} onClose={onClose} onDone={onChanged} />}
    </DialogButton>
    {subscription.handler && (
      <DialogButton label="Replay">
        {(onClose) => <Replay subscription={subscription} onClose={onClose} />}
      </DialogButton>
    )}
  </>
);

/** Shows how a program can read the events of a subscription that has no handler. */
export function HowToRead({ subscription }: { readonly subscription: Subscription }) {
  const { id, topics } = subscription;
  const [topic] = topics;
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
