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
  readonly mutedUntil: Date | null;
  readonly mutedBy: string | null;
  readonly note: string | null;
  readonly notedBy: string | null;
  readonly resolvedAt: Date | null;
}

/** Whether an open problem is muted. A resolved problem is not. */
export const isMuted = (
  { state, mutedUntil }: Pick<ProblemFacts, "state" | "mutedUntil">,
  nowMs: number,
): boolean => state !== "resolved" && mutedUntil !== null && mutedUntil.getTime() > nowMs;

export function renderProblem({ about, ...problem }: ProblemFacts, nowMs: number) {
  const { app = null, channel = null, subscription = null, connection = null, blueprint = null } = about;
  const { id, organizationId, kind, state, severity, message, cure, figures, acknowledgedBy } = problem;
  const muted = isMuted(problem, nowMs);
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
    mutedUntil: muted && problem.mutedUntil ? timeOf(problem.mutedUntil) : null,
    mutedBy: muted ? problem.mutedBy : null,
    note: problem.note,
    notedBy: problem.notedBy,
    resolvedAt: problem.resolvedAt && timeOf(problem.resolvedAt),
  };
}

const timeOf = (date: Date): string => formatTimestamp(date.getTime());
