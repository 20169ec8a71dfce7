import type { ComponentChildren } from "preact";
import type { Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import type { Loaded } from "../../api/use-load.ts";
import { describeReason } from "../../kit/explained/reasons.ts";
import { WhenLoaded } from "../../kit/feedback/states.tsx";
import { Badge, type Tone } from "../../kit/layout/page.tsx";
import { formatBytes, formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { getSuggestedAction } from "./suggested-action.ts";

type Whole = Schemas["WholeDelivery"];
export type Reading = Schemas["Reading"];

interface Props {
  readonly appId: string;
  readonly delivery: Whole;
  readonly readings: Loaded<readonly Reading[]>;
}

export function Steps({ appId, delivery, readings }: Props) {
  const { items, events, quarantine, verification, status, reason } = delivery;
  const isRefused = status === "refused" || status === "failed";
  const types = items.flatMap(({ definitions }) => definitions.filter(({ matches }) => matches));
  const isWrong = [...items.flatMap(({ failures }) => failures), ...quarantine].some(
    (one) => !isUnmatched(one),
  );
  const isNoted = items.length > 0;
  return (
    <ol class="steps" aria-label="Processing steps">
      <Step title="Received" tone="ok">
        <Time at={delivery.receivedAt} />
        {delivery.bodyBytes !== null && ` · ${formatBytes(delivery.bodyBytes)}`}
        {delivery.received > 0 &&
          ` · ${formatCount(delivery.received)} ${delivery.received === 1 ? "item" : "items"}`}
      </Step>
      <Step title="Verified" tone={VERIFIED[verification.result].tone}>
        {VERIFIED[verification.result].words}
        {verification.scheme !== "none" && (
          <>
            {" "}
            Scheme <UntrustedText>{verification.preset ?? verification.scheme}</UntrustedText>.
          </>
        )}
        {verification.deliveryId !== null && (
          <>
            {" "}
            Signed id{" "}
            <code>
              <UntrustedText max={128}>{verification.deliveryId}</UntrustedText>
            </code>
            .
          </>
        )}
      </Step>
      {delivery.woken.length > 0 && (
        <Step title="Woke" tone="ok">
          <Names names={delivery.woken} />
        </Step>
      )}
      {status === "woke" ? undefined : isRefused ? (
        <Step
          title={status === "refused" ? "Rejected" : "Failed"}
          tone="bad"
          after={`+${formatDuration(delivery.durationMs)}`}
        >
          {delivery.httpStatus !== null && <strong>{delivery.httpStatus} </strong>}
          <UntrustedText max={600}>{reason}</UntrustedText>
          {delivery.httpStatus !== null && <p class="soft">{getSuggestedAction(delivery.httpStatus)}</p>}
        </Step>
      ) : (
        <>
          <Step title="Matched" tone={!isNoted ? "plain" : types.length > 0 ? "ok" : "warn"}>
            {!isNoted ? (
              <span class="faint">Not recorded.</span>
            ) : (
              <Names names={types.map(({ type }) => type)} />
            )}
            <Kept appId={appId} items={quarantine.filter(isUnmatched)} />
          </Step>
          <Step title="Validated" tone={isWrong ? "warn" : types.length > 0 ? "ok" : "plain"}>
            {!isWrong && types.length > 0 && "No errors."}
            <Kept appId={appId} items={quarantine.filter((item) => !isUnmatched(item))} />
          </Step>
          <Step
            title="Published"
            tone={events.length > 0 ? "ok" : "plain"}
            after={`+${formatDuration(delivery.durationMs)}`}
          >
            {events.length === 0 ? (
              "No event."
            ) : (
              <ul class="step-list">
                {events.map(({ id, type, topic, entryId, status: how }) => (
                  <li key={`${topic}/${entryId}/${id}`} class="row wrap">
                    <Badge tone={how === "published" ? "ok" : "plain"}>{how}</Badge>
                    <a href={`/console/events${formatQuery({ app: appId, event: `${topic}/${entryId}` })}`}>
                      <UntrustedText max={255}>{type}</UntrustedText>
                    </a>
                    <code>
                      <UntrustedText max={128}>{id}</UntrustedText>
                    </code>
                  </li>
                ))}
              </ul>
            )}
          </Step>
          {events.length > 0 && <ReadSteps appId={appId} delivery={delivery} readings={readings} />}
        </>
      )}
    </ol>
  );
}

const isUnmatched = ({ reason }: { readonly reason: string }): boolean => reason === "no_match";

interface KeptProps {
  readonly appId: string;
  readonly items: Whole["quarantine"];
}

/** Shows the delivery's quarantined items with the reason and a suggested fix for each. */
const Kept = ({ appId, items }: KeptProps) => (
  <ul class="step-list">
    {items.map(({ id, reason, path }) => (
      <li key={id}>
        <a href={`/console/quarantine${formatQuery({ app: appId, item: id })}`}>
          <Badge tone="warn">{reason}</Badge>
        </a>{" "}
        {path !== undefined && (
          <code>
            <UntrustedText max={200}>{path}</UntrustedText>{" "}
          </code>
        )}
        {describeReason(reason).description}{" "}
        <span class="soft">{describeReason(reason).suggestedAction}</span>
      </li>
    ))}
  </ul>
);

/** Shows a step for each subscription that covers an event of the delivery, with its attempts. */
function ReadSteps({ appId, delivery, readings }: Props) {
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
          <code class="soft">
            <UntrustedText max={64}>{eventId}</UntrustedText>
          </code>
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

interface StepProps {
  readonly title: string;
  readonly tone: Tone;
  /** Time since the arrival of the delivery. */
  readonly after?: string | undefined;
  readonly children: ComponentChildren;
}

const Step = ({ title, tone, after, children }: StepProps) => (
  <li class={`step ${tone}`}>
    <h2>
      {title} <span class="sr-only">{HEARD[tone]}</span>
      {after !== undefined && <span class="step-after">{after}</span>}
    </h2>
    <div class="step-body">{children}</div>
  </li>
);

const HEARD: Readonly<Record<Tone, string>> = {
  ok: "(done)",
  bad: "(failed)",
  warn: "(needs attention)",
  info: "(in progress)",
  plain: "",
};

const Names = ({ names }: { readonly names: readonly string[] }) => (
  <>
    {[...new Set(names)].map((name, index) => (
      <span key={name}>
        {index > 0 && ", "}
        <UntrustedText max={255}>{name}</UntrustedText>
      </span>
    ))}
  </>
);

const VERIFIED: Readonly<
  Record<Whole["verification"]["result"], { readonly tone: Tone; readonly words: string }>
> = {
  verified: { tone: "ok", words: "Its signature is valid." },
  unproved: {
    tone: "warn",
    words: "Verification failed, but the channel is in shadow mode, so the delivery was accepted.",
  },
  none: { tone: "plain", words: "The channel has no verification. Anyone who knows its address can send." },
  fetched: { tone: "ok", words: "The gateway fetched it." },
  refused: { tone: "bad", words: "Verification failed." },
  unknown: { tone: "plain", words: "It was rejected before verification." },
};

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
