import { formatLabel } from "../../kit/form/labels.ts";
import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import { Badge, type Tone } from "../../kit/layout/page.tsx";
import { loadProblems, type Problem, problems } from "../../kit/layout/problems.ts";
import { choiceFilter } from "../../kit/list/filters.tsx";
import { type ResourceSpec, ResourceView } from "../../kit/resource/resource-view.tsx";
import { Copyable } from "../../kit/text/copy.tsx";
import { formatCount } from "../../kit/text/numbers.ts";
import { SettingText } from "../../kit/text/setting-text.tsx";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { ProblemActions } from "./change.tsx";
import { ProblemSubject, titleOfKind } from "./problem-words.tsx";

const KINDS: readonly Problem["kind"][] = [
  ...(["channel_failing", "channel_silent", "connection_failing", "connection_needs_reauth"] as const),
  ...(["data_lost", "deliveries_missed", "durability_not_chosen"] as const),
  ...(["handler_failing", "intake_overflow", "quarantine_growing", "quarantine_near_limit"] as const),
  ...(["reconcile_mismatch"] as const),
  ...(["registration_failed", "registration_lapsed", "registration_orphaned"] as const),
  ...(["retention_at_risk", "schema_drift", "storage_near_limit", "subscription_lagging"] as const),
];
const STATES: readonly Problem["state"][] = ["opened", "acknowledged", "resolved"];

const toneOf = ({ state, severity }: Problem): Tone => {
  if (state === "resolved") return "ok";
  return severity === "error" ? "bad" : "warn";
};

const SPEC: ResourceSpec<Problem> = {
  title: "Problems",
  one: "problem",
  many: "problems",
  lead: (
    <>
      Problems that Inlet found, with suggested actions. The app <code>inlet</code> publishes an event for
      each new or resolved problem, so a subscription can notify the person on call.
    </>
  ),
  path: "/problems",
  noun: "problems",
  columns: [
    {
      title: "What",
      width: "minmax(0, 1.3fr)",
      cell: (problem) => <Badge tone={toneOf(problem)}>{titleOfKind(problem.kind)}</Badge>,
    },
    { title: "State", width: "7rem", priority: 2, cell: ({ state }) => state },
    {
      title: "Where",
      width: "minmax(0, 1.5fr)",
      priority: 2,
      cell: (problem) => <ProblemSubject problem={problem} />,
    },
    {
      title: "Message",
      width: "minmax(0, 3fr)",
      priority: 3,
      cell: ({ message, note }) => (
        <>
          <UntrustedText>{message}</UntrustedText>
          {note !== null && (
            <span class="faint">
              {" "}
              · <UntrustedText max={100}>{note}</UntrustedText>
            </span>
          )}
        </>
      ),
    },
    { title: "Since", width: "6rem", cell: ({ firstSeenAt }) => <Time at={firstSeenAt} as="ago" /> },
  ],
  titleOf: ({ kind }) => titleOfKind(kind),
  head: (problem) => (
    <div class={`note ${toneOf(problem)}`}>
      <p>
        <SettingText>{problem.message}</SettingText>
      </p>
      <p class="note-detail">
        <SettingText>{problem.suggestedAction}</SettingText>
      </p>
    </div>
  ),
  facts: (problem) => ({
    State: <Badge tone={toneOf(problem)}>{problem.state}</Badge>,
    Affects: <ProblemSubject problem={problem} />,
    Note: problem.note ?? false,
    "Muted until": problem.mutedUntil !== null && <Time at={problem.mutedUntil} as="full" />,
    ...Object.fromEntries(
      Object.entries(problem.figures).map(([name, figure]) => [formatLabel(name), formatCount(figure)]),
    ),
    "First seen": <Time at={problem.firstSeenAt} as="full" />,
    "Last seen": <Time at={problem.lastSeenAt} as="full" />,
    Acknowledged: problem.acknowledgedAt !== null && <Time at={problem.acknowledgedAt} as="full" />,
    Resolved: problem.resolvedAt !== null && <Time at={problem.resolvedAt} as="full" />,
    Id: <Copyable text={problem.id} what="problem id" />,
  }),
  actions: (problem, reload) => <ProblemActions problem={problem} onDone={reload} />,
  filters: [
    choiceFilter("state", "State", STATES),
    choiceFilter("kind", "What", KINDS, titleOfKind),
    { name: "appId", label: "App", kind: "text", placeholder: "app_…" },
  ],
  query: { muted: "false" },
  below: () => <MutedProblems />,
  onChanged: () => void loadProblems(),
  emptyTitle: "No problems",
  empty: "Inlet checks channels, connections, subscriptions and storage.",
};

/** Fold with the muted problems, which do not count as open. */
function MutedProblems() {
  const muted = problems.value?.muted ?? [];
  if (muted.length === 0) return null;
  return (
    <details class="more">
      <summary>
        {formatCount(muted.length)} muted {muted.length === 1 ? "problem" : "problems"}
      </summary>
      <ul class="rows">
        {muted.map((problem) => (
          <li key={problem.id}>
            <MaybeLink href={viewHref("/problems", {}, { id: problem.id })}>
              {titleOfKind(problem.kind)}
            </MaybeLink>
            <ProblemSubject problem={problem} />
            <span class="rows-main soft">
              <UntrustedText max={400}>{problem.note ?? problem.message}</UntrustedText>
            </span>
            <span class="faint nowrap">
              ends <Time at={problem.mutedUntil} as="ago" />
            </span>
          </li>
        ))}
      </ul>
    </details>
  );
}

export default function Problems() {
  return <ResourceView spec={SPEC} />;
}
