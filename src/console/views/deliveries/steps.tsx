import type { Schemas } from "../../api/client.ts";
import { formatQuery } from "../../api/curl.ts";
import { describeReason } from "../../kit/explained/reasons.ts";
import { Badge, type Tone } from "../../kit/layout/page.tsx";
import { formatBytes, formatCount, formatDuration } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedCode, UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { ReadSteps, type ReadStepsProps } from "./read-steps.tsx";
import { Step } from "./step.tsx";
import { getSuggestedAction } from "./suggested-action.ts";

type Whole = Schemas["WholeDelivery"];

export function Steps({ appId, delivery, readings }: ReadStepsProps) {
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
      <Step title={VERIFIED[verification.result].title} tone={VERIFIED[verification.result].tone}>
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
            Signed id <UntrustedCode max={128}>{verification.deliveryId}</UntrustedCode>.
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
          <Step
            title={types.length > 0 ? "Matched" : isNoted ? "Not matched" : "Matching"}
            tone={!isNoted ? "plain" : types.length > 0 ? "ok" : "warn"}
          >
            {!isNoted ? (
              <span class="faint">Not recorded.</span>
            ) : (
              <Names names={types.map(({ type }) => type)} />
            )}
            <Kept appId={appId} items={quarantine.filter(isUnmatched)} />
          </Step>
          <Step
            title={isWrong ? "Not valid" : types.length > 0 ? "Validated" : "Not validated"}
            tone={isWrong ? "warn" : types.length > 0 ? "ok" : "plain"}
          >
            {!isWrong && types.length > 0 && "No errors."}
            <Kept appId={appId} items={quarantine.filter((item) => !isUnmatched(item))} />
          </Step>
          <Step
            title={events.length > 0 ? "Published" : "Not published"}
            tone={events.length > 0 ? "ok" : "plain"}
            after={`+${formatDuration(delivery.durationMs)}`}
          >
            {events.length > 0 && (
              <ul class="step-list">
                {events.map(({ id, type, topic, entryId, status: how }) => (
                  <li key={`${topic}/${entryId}/${id}`} class="row wrap">
                    <Badge tone={how === "published" ? "ok" : "plain"}>{how}</Badge>
                    <a href={`/console/events${formatQuery({ app: appId, event: `${topic}/${entryId}` })}`}>
                      <UntrustedText max={255}>{type}</UntrustedText>
                    </a>
                    <UntrustedCode max={128}>{id}</UntrustedCode>
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
          <>
            <UntrustedCode max={200}>{path}</UntrustedCode>{" "}
          </>
        )}
        {describeReason(reason).description}{" "}
        <span class="soft">{describeReason(reason).suggestedAction}</span>
      </li>
    ))}
  </ul>
);

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
  Record<
    Whole["verification"]["result"],
    { readonly title: string; readonly tone: Tone; readonly words: string }
  >
> = {
  verified: { title: "Verified", tone: "ok", words: "Its signature is valid." },
  unproved: {
    title: "Verification failed",
    tone: "warn",
    words: "The channel is in shadow mode, so the delivery was accepted.",
  },
  none: {
    title: "Not verified",
    tone: "plain",
    words: "The channel has no verification. Anyone who knows its address can send.",
  },
  fetched: { title: "Fetched", tone: "ok", words: "The gateway fetched it." },
  refused: { title: "Verification failed", tone: "bad", words: "The delivery was rejected." },
  unknown: { title: "Not verified", tone: "plain", words: "It was rejected before verification." },
};
