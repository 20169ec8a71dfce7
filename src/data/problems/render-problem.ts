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

/** Whether the time of the mute has not ended. Ignores the state of the problem. */
export const hasMute = ({ mutedUntil }: Pick<ProblemFacts, "mutedUntil">, nowMs: number): boolean =>
  mutedUntil !== null && mutedUntil.getTime() > nowMs;

/** Whether an open problem is muted. A resolved problem is not. */
export const isMuted = (problem: Pick<ProblemFacts, "state" | "mutedUntil">, nowMs: number): boolean =>
  problem.state !== "resolved" && hasMute(problem, nowMs);

/** @param showsMute whether the result contains the mute. The event of a resolved problem does, so that its handlers can ignore it. */
export function renderProblem({ about, ...problem }: ProblemFacts, showsMute: boolean) {
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
    mutedUntil: showsMute && problem.mutedUntil ? timeOf(problem.mutedUntil) : null,
    mutedBy: showsMute ? problem.mutedBy : null,
    note: problem.note,
    notedBy: problem.notedBy,
    resolvedAt: problem.resolvedAt && timeOf(problem.resolvedAt),
  };
}

const timeOf = (date: Date): string => formatTimestamp(date.getTime());
