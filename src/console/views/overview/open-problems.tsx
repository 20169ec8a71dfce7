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

/** Maximum number of problems on the overview. The problems page lists all. */
const SHOWN = 6;

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
  const { rows, total } = known;
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
        {all !== undefined && <a href={all}>All problems</a>}
      </header>
      <ul class="problems">
        {opened.slice(0, SHOWN).map((problem) => (
          <ProblemItem key={problem.id} problem={problem} />
        ))}
      </ul>
    </section>
  );
}

function ProblemItem({ problem }: { readonly problem: Problem }) {
  const { id, kind, severity, message, suggestedAction, firstSeenAt } = problem;
  return (
    <li class={`problem ${severity}`}>
      <div class="problem-main">
        <p class="row wrap">
          <MaybeLink href={viewHref("/problems", {}, { id })} class="problem-kind">
            {titleOfKind(kind)}
          </MaybeLink>
          <ProblemSubject problem={problem} />
          <span class="faint">
            <Time at={firstSeenAt} as="ago" />
          </span>
        </p>
        <p>
          <UntrustedText max={400}>{message}</UntrustedText>
        </p>
        {severity === "error" && (
          <p class="soft">
            <UntrustedText max={400}>{suggestedAction}</UntrustedText>
          </p>
        )}
      </div>
      <Acknowledge problem={problem} />
    </li>
  );
}
