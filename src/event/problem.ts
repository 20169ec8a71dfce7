export const PROBLEM_KINDS = [
  "channel_failing",
  "channel_silent",
  "connection_failing",
  "connection_needs_reauth",
  "data_lost",
  "deliveries_missed",
  "durability_not_chosen",
  "handler_failing",
  "intake_overflow",
  "quarantine_growing",
  "quarantine_near_limit",
  "reconcile_mismatch",
  "registration_failed",
  "registration_lapsed",
  "registration_orphaned",
  "retention_at_risk",
  "schema_drift",
  "storage_near_limit",
  "subscription_lagging",
] as const;
export type ProblemKind = (typeof PROBLEM_KINDS)[number];

export const PROBLEM_STATES = ["opened", "acknowledged", "resolved"] as const;
export type ProblemState = (typeof PROBLEM_STATES)[number];

/**
 * Severity of a problem. `error` means that events are being rejected, not delivered or lost; `warning` means that this may happen
 * soon.
 */
export const PROBLEM_SEVERITIES = ["warning", "error"] as const;
export type ProblemSeverity = (typeof PROBLEM_SEVERITIES)[number];

/** Objects that a problem affects, with their names and titles when the problem was detected. */
export interface ProblemAbout {
  readonly app?: { readonly id: string; readonly uid: string; readonly title: string } | undefined;
  readonly channel?: { readonly uid: string; readonly title: string | null } | undefined;
  readonly subscription?: { readonly id: string; readonly eventUid: string } | undefined;
  readonly connection?: { readonly id: string; readonly name: string } | undefined;
  /** The blueprint whose intake is affected. */
  readonly blueprint?: { readonly id: string; readonly uid: string; readonly title: string } | undefined;
}

/** The app on which Inlet publishes events about an organization, such as problems. Each organization has one, with a single channel. */
export const SYSTEM_APP = { uid: "inlet", title: "Inlet" } as const;
export const PROBLEMS_CHANNEL = { uid: "problems", title: "Problems" } as const;

export type ProblemChange = "opened" | "resolved";

/** Returns the event type for a change of a problem, for example `channel_failing.opened`. */
export const problemEventType = (kind: ProblemKind, change: ProblemChange): string => `${kind}.${change}`;
export const PROBLEM_EVENT_TYPES: readonly string[] = PROBLEM_KINDS.flatMap((kind) => [
  problemEventType(kind, "opened"),
  problemEventType(kind, "resolved"),
]);
