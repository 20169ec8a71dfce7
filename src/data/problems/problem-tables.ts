import type { ColumnType, Generated } from "kysely";
import type { ProblemAbout, ProblemKind, ProblemSeverity, ProblemState } from "../../event/problem.ts";
import type { Json, Timestamp } from "../columns.ts";

export interface ProblemsTable {
  id: string;
  organizationId: string;
  kind: ProblemKind;
  /** Id of the affected object. Each subject has at most one open problem of each kind. */
  subject: string;
  state: ProblemState;
  severity: ProblemSeverity;
  about: Json<ProblemAbout>;
  appId: string | null;
  message: string;
  cure: string;
  figures: Json<Readonly<Record<string, number>>>;
  firstSeenAt: Timestamp;
  lastSeenAt: Timestamp;
  acknowledgedAt: ColumnType<Date | null, never, Date>;
  acknowledgedBy: ColumnType<string | null, never, string | null>;
  /** A mute stays with the next problem of the same kind and subject, until this time. */
  mutedUntil: ColumnType<Date | null, Date | null, Date | null>;
  mutedBy: ColumnType<string | null, string | null, string | null>;
  note: ColumnType<string | null, never, string | null>;
  notedBy: ColumnType<string | null, never, string | null>;
  resolvedAt: ColumnType<Date | null, never, Date>;
  createdAt: Timestamp;
}

export interface ProblemEventsTable {
  number: Generated<number>;
  problemId: string;
  organizationId: string;
  type: string;
  data: string;
  createdAt: Timestamp;
}

export interface ProblemLooksTable {
  kind: ProblemKind;
  lookedAt: ColumnType<Date | null, Date | null, Date>;
  failingSince: ColumnType<Date | null, Date | null, Date | null>;
}
