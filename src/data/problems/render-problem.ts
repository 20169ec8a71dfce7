import type { ProblemAbout, ProblemKind, ProblemSeverity, ProblemState } from "../../event/problem.ts";
import { formatTimestamp } from "../../lib/clock.ts";

export interface ProblemFacts {
  readonly id: string;
  readonly organizationId: string;
  readonly kind: ProblemKind;
  readonly state: ProblemState;
  readonly severity: ProblemSeverity;
  readonly about: ProblemAbout;
  readonly message: string;
  readonly cure: string;
  readonly figures: Readonly<Record<string, number>>;
  readonly firstSeenAt: Date;
  readonly lastSeenAt: Date;
  readonly acknowledgedAt: Date | null;
  readonly acknowledgedBy: string | null;
  readonly resolvedAt: Date | null;
}

export function renderProblem({ about, ...problem }: ProblemFacts) {
  const { app = null, channel = null, subscription = null, connection = null, blueprint = null } = about;
  const { id, organizationId, kind, state, severity, message, cure, figures, acknowledgedBy } = problem;
  return {
    id,
    organizationId,
    kind,
    state,
    severity,
    message,
    suggestedAction: cure,
    figures,
    app,
    channel,
    subscription,
    connection,
    blueprint,
    firstSeenAt: timeOf(problem.firstSeenAt),
    lastSeenAt: timeOf(problem.lastSeenAt),
    acknowledgedAt: problem.acknowledgedAt && timeOf(problem.acknowledgedAt),
    acknowledgedBy,
    resolvedAt: problem.resolvedAt && timeOf(problem.resolvedAt),
  };
}

const timeOf = (date: Date): string => formatTimestamp(date.getTime());
