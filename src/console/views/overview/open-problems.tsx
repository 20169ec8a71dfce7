import { ErrorNote, Loading } from "../../kit/feedback/states.tsx";
import { viewHref } from "../../kit/layout/links.ts";
import { MaybeLink } from "../../kit/layout/maybe-link.tsx";
import { Badge } from "../../kit/layout/page.tsx";
import { loadProblems, type Problem, problems, problemsFailure } from "../../kit/layout/problems.ts";
import { formatCount } from "../../kit/text/numbers.ts";
import { Time } from "../../kit/text/time.tsx";
import { UntrustedText } from "../../kit/text/untrusted-text.tsx";
import { Acknowledge } from "../problems/acknowledge.tsx";
import { ProblemSubject, titleOfKind } from "../problems/problem-words.tsx";

export function OpenProblems() {
  const failure = problemsFailure.value;
  const known = problems.value;
  if (known === undefined) {
    return failure ? (
      <ErrorNote error={failure} onRetry={() => void loadProblems()} />
    ) : (
      <Loading lines={1} />
    );
  }
  const { rows, total, muted } = known;
  const opened = rows.filter(({ state }) => state === "opened");
  const acknowledged = rows.length - opened.length;
  const all = viewHref("/problems");
  if (opened.length === 0) {
    return (
      <p class="all-well">
        <Badge tone="ok">No open problems</Badge>
        {acknowledged > 0 && (
          <MaybeLink href={viewHref("/problems", {}, { state: "acknowledged" })}>
            {acknowledged} acknowledged
          </MaybeLink>
        )}
        {muted.length > 0 && <MaybeLink href={all}>{muted.length} muted</MaybeLink>}
      </p>
    );
  }
  return (
    <section class="section" aria-label="Problems">
      <header class="section-head">
        <h2>
          {formatCount(total)} open {total === 1 ? "problem" : "problems"}
        </h2>
        <span class="grow" />
        {muted.length > 0 && <MaybeLink href={all}>{formatCount(muted.length)} muted</MaybeLink>}
        {all !== undefined && <a href={all}>All problems</a>}
      </header>
      <ul class="problems">
        {groupByKind(opened).map((group) => (
          <ProblemGroup key={group[0].kind} group={group} />
        ))}
      </ul>
    </section>
  );
}

type Group = readonly [first: Problem, ...others: Problem[]];

/** Groups problems with the same cause. The order of the groups is that of their first problems. */
function groupByKind(rows: readonly Problem[]): readonly Group[] {
  const groups = new Map<Problem["kind"], [Problem, ...Problem[]]>();
  for (const problem of rows) {
    const group = groups.get(problem.kind);
    if (group) group.push(problem);
    else groups.set(problem.kind, [problem]);
  }
  return [...groups.values()];
}

function ProblemGroup({ group: [first, ...others] }: { readonly group: Group }) {
  const { id, kind, severity, message, firstSeenAt } = first;
  const isAlone = others.length === 0;
  return (
    <li class={`problem ${severity}`}>
      <span class="sr-only">{severity}</span>
      <MaybeLink
        href={viewHref("/problems", {}, isAlone ? { id } : { kind, state: "opened" })}
        class="problem-kind"
      >
        {titleOfKind(kind)}
        {!isAlone && ` (${formatCount(others.length + 1)})`}
      </MaybeLink>
      <ProblemSubject problem={first} />
      <span class="problem-message soft">
        <UntrustedText max={400}>{message}</UntrustedText>
      </span>
      <span class="faint nowrap">
        <Time at={firstSeenAt} as="ago" />
      </span>
      {isAlone && <Acknowledge problem={first} />}
    </li>
  );
}
