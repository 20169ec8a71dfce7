import type { Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import type { Loaded } from "../../api/use-load.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { Badge, type Tone } from "../../kit/layout/page.tsx";
import { formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedCode, UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { Step } from "./step.tsx";

type Whole = Schemas["WholeDelivery"];
export type Reading = Schemas["Reading"];

export interface ReadStepsProps {
  readonly appId: string;
  readonly delivery: Whole;
  readonly readings: Loaded<readonly Reading[]>;
}

/** Shows a step for each subscription that covers an event of the delivery, with its attempts. */
export function ReadSteps({ appId, delivery, readings }: ReadStepsProps) {
  const bySubscription = Map.groupBy(readings.data ?? [], ({ subscriptionId }) => subscriptionId);
  if (bySubscription.size === 0)
    return (
      <Step title="Read" tone="plain">
        <WhenLoaded loaded={readings} lines={2}>
          {() => "No subscription covers its events."}
        </WhenLoaded>
      </Step>
    );
  return (
    <>
      {[...bySubscription].map(([subscriptionId, all]) => (
        <Step
          key={subscriptionId}
          title="Read by a subscription"
          tone={READ[worstOf(all)].tone}
          after={formatAfter(all.flatMap(({ attempts }) => attempts).at(-1)?.at, delivery)}
        >
          <ul class="step-list">
            {all.map((reading) => (
              <OneReading
                key={`${reading.entryId}/${reading.topic}`}
                appId={appId}
                delivery={delivery}
                reading={reading}
              />
            ))}
          </ul>
        </Step>
      ))}
    </>
  );
}

/** Formats the time between the arrival of the delivery and `at`. */
const formatAfter = (at: string | undefined, { receivedAt }: Whole): string | undefined =>
  at === undefined ? undefined : `+${formatDuration(Math.max(0, Date.parse(at) - Date.parse(receivedAt)))}`;

interface OneReadingProps {
  readonly appId: string;
  readonly delivery: Whole;
  readonly reading: Reading;
}

function OneReading({ appId, delivery, reading }: OneReadingProps) {
  const { subscriptionId, eventId, state, reader, deliveries, pendingSeconds, attempts } = reading;
  const { tone, words } = READ[state];
  const app = `/console/apps/${encodeURIComponent(appId)}`;
  return (
    <li>
      <div class="row wrap">
        <Badge tone={tone}>{words}</Badge>
        <a
          href={
            state === "deadLetter"
              ? `/console/dead-letters${formatQuery({ app: appId, subscription: subscriptionId })}`
              : `${app}/subscriptions${formatQuery({ subscription: subscriptionId })}`
          }
        >
          <code>{subscriptionId}</code>
        </a>
        {delivery.events.length > 1 && (
          <UntrustedCode class="soft" max={64}>
            {eventId}
          </UntrustedCode>
        )}
        {reader !== null && (
          <span class="soft">
            by <UntrustedText max={64}>{reader}</UntrustedText>
            {pendingSeconds !== null && ` for ${formatDuration(Math.round(pendingSeconds) * 1_000)}`}
            {deliveries !== null && deliveries > 1 && `, delivered ${formatCount(deliveries)} times`}
          </span>
        )}
      </div>
      {attempts.length > 0 && (
        <ol class="step-attempts">
          {attempts.map(({ at, status, code, durationMs }, index) => (
            <li key={index} class="row">
              <Badge tone="bad">{status ?? code}</Badge>
              <Time at={at} />
              <span class="faint">took {formatDuration(durationMs)}</span>
              <span class="step-after">{formatAfter(at, delivery)}</span>
            </li>
          ))}
        </ol>
      )}
    </li>
  );
}

const READ: Readonly<Record<Reading["state"], { readonly tone: Tone; readonly words: string }>> = {
  unread: { tone: "plain", words: "not read yet" },
  pending: { tone: "info", words: "being processed" },
  retrying: { tone: "warn", words: "retrying" },
  deadLetter: { tone: "bad", words: "dead letter" },
  acknowledged: { tone: "ok", words: "acknowledged" },
};

const ATTENTION = ["deadLetter", "retrying", "pending", "unread"] as const;

const worstOf = (readings: readonly Reading[]): Reading["state"] =>
  ATTENTION.find((state) => readings.some((one) => one.state === state)) ?? "acknowledged";
