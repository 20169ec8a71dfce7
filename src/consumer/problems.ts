/**
 * A problem reported to `onProblem`.
 *
 * - `redis` means that a call to Redis failed. The consumer retries it.
 * - `failed` means that a handler failed. The event is delivered again.
 * - `dead` means that the last attempt failed, and the event is now a dead letter.
 * - `lost` means that retention trimmed the entries before they were handled.
 *
 * @example
 * ```ts
 * const onProblem = (problem: ConsumerProblem) => {
 *   if (problem.kind === "dead") console.error(`gave up on ${problem.entryId} of ${problem.topic}`, problem.error);
 * };
 * ```
 */
export type ConsumerProblem =
  | { readonly kind: "redis"; readonly error: unknown }
  | {
      readonly kind: "failed" | "dead";
      readonly topic: string;
      readonly entryId: string;
      readonly attempt: number;
      readonly error: unknown;
    }
  | { readonly kind: "lost"; readonly topic: string; readonly entryIds: readonly string[] };

export type OnProblem = (problem: ConsumerProblem) => unknown;

/** Minimum time in ms between two warnings about the same kind of problem. A failing handler can fail thousands of times a second. */
const WARN_EVERY_MS = 10_000;
/** Minimum time in ms between two reports of a failed handler to Redis. */
const REPORT_EVERY_MS = 1_000;

/** Prints problems as process warnings, at most one of each kind in ten seconds. This is the default of `onProblem`. */
export function createProblemWarnings(): (problem: ConsumerProblem) => void {
  const kinds = new Map<string, { readonly atMs: number; skipped: number }>();
  return (problem) => {
    const { kind } = problem;
    const last = kinds.get(kind);
    const nowMs = performance.now();
    if (last !== undefined && nowMs - last.atMs < WARN_EVERY_MS) {
      last.skipped++;
      return;
    }
    kinds.set(kind, { atMs: nowMs, skipped: 0 });
    const more = last === undefined || last.skipped === 0 ? "" : ` (and ${last.skipped} more of this kind)`;
    process.emitWarning(`${describe(problem)}${more}`, {
      type: "InletConsumerWarning",
      code: `INLET_${kind.toUpperCase()}`,
    });
  };
}

function describe(problem: ConsumerProblem): string {
  switch (problem.kind) {
    case "redis":
      return `a call to Redis failed and is retried: ${messageOf(problem.error)}`;
    case "failed":
      return `the handler failed for the event ${problem.entryId} of ${problem.topic} (attempt ${problem.attempt}), which is delivered again: ${stackOf(problem.error)}`;
    case "dead":
      return `the handler failed for the event ${problem.entryId} of ${problem.topic} in its last attempt (${problem.attempt}). The event is now a dead letter: ${stackOf(problem.error)}`;
    case "lost":
      return `retention trimmed ${problem.entryIds.length} entries of ${problem.topic} before they were handled, the first is ${problem.entryIds[0]}`;
    default:
      return problem satisfies never;
  }
}

/** Creates a function that stores the last error of a handler in Redis, where the gateway shows it as `lastError` of the subscription. */
export function createErrorReports(
  reportError: (message: string) => Promise<void>,
): (problem: ConsumerProblem) => void {
  let reportedAtMs = Number.NEGATIVE_INFINITY;
  return (problem) => {
    if (problem.kind !== "failed" && problem.kind !== "dead") return;
    if (performance.now() - reportedAtMs < REPORT_EVERY_MS) return;
    reportedAtMs = performance.now();
    // Ignore failures. If Redis is unavailable, the other calls report it.
    void reportError(messageOf(problem.error)).catch(() => {});
  };
}

/** Wraps `onProblem` so that its errors become process warnings, which Node prints to standard error by default. */
export const contained = (onProblem: OnProblem) => (problem: ConsumerProblem) => {
  const warn = (thrown: unknown): void =>
    process.emitWarning(`onProblem failed for the problem "${problem.kind}": ${stackOf(thrown)}`, {
      code: "INLET_ON_PROBLEM",
    });
  try {
    // Catch rejections too, because TypeScript accepts an async function as `onProblem`.
    Promise.resolve(onProblem(problem)).catch(warn);
  } catch (error) {
    warn(error);
  }
};

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const stackOf = (error: unknown): string =>
  error instanceof Error ? (error.stack ?? error.message) : String(error);
