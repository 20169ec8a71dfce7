/** The kinds of problems that are looked for. */
export const PROBLEM_KINDS = [
  "channel_failing",
  "channel_silent",
  "connection_failing",
  "connection_needs_reauth",
  "handler_failing",
  "quarantine_growing",
  "quarantine_near_limit",
  "retention_at_risk",
  "storage_near_limit",
  "subscription_lagging",
] as const;
export type ProblemKind = (typeof PROBLEM_KINDS)[number];

export const PROBLEM_STATES = ["opened", "acknowledged", "resolved"] as const;
export type ProblemState = (typeof PROBLEM_STATES)[number];

/** `error`: events are refused, not delivered, or lost. `warning`: that may come. */
export const PROBLEM_SEVERITIES = ["warning", "error"] as const;
export type ProblemSeverity = (typeof PROBLEM_SEVERITIES)[number];

/** The objects that a problem is about, by name and title as they were when it was seen. */
export interface ProblemAbout {
  readonly app?: { readonly id: string; readonly uid: string; readonly title: string } | undefined;
  readonly channel?: { readonly uid: string; readonly title: string | null } | undefined;
  readonly subscription?: { readonly id: string; readonly eventUid: string } | undefined;
  readonly connection?: { readonly id: string; readonly name: string } | undefined;
}

/** The app of each organization to which Inlet itself publishes, and its one channel. */
export const SYSTEM_APP = { uid: "inlet", title: "Inlet" } as const;
export const PROBLEMS_CHANNEL = { uid: "problems", title: "Problems" } as const;

/** The changes of state that are events. */
export type ProblemChange = "opened" | "resolved";

/** The types of the events of problems: `<problem>.opened` and `<problem>.resolved`. */
export const problemEventType = (kind: ProblemKind, change: ProblemChange): string => `${kind}.${change}`;
export const PROBLEM_EVENT_TYPES: readonly string[] = PROBLEM_KINDS.flatMap((kind) => [
  problemEventType(kind, "opened"),
  problemEventType(kind, "resolved"),
]);
