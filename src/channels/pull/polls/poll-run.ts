import { StaleSourceError } from "../../../bus/errors.ts";
import { type JobPlan, nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import { channelFacts } from "../../../event/channel.ts";
import { sleep } from "../../../lib/sleep.ts";
import { withinGrace } from "../../../lib/wait.ts";
import type { Log } from "../../../log.ts";
import type { SourceEnd } from "../../source.ts";
import { endForThrownError, failed, SLOW_RETRY_MS } from "../source-end.ts";
import type { OpeningRun } from "../source-runs.ts";
import type { PollsContext, PollTarget } from "./poll-target.ts";
import { failureWaitMs, nextPoll, planFrom } from "./poll-timing.ts";

/**
 * The outcome of a poll:
 * - `early`: the poll did not run, because its source is not due yet.
 * - `none`: the poll did not run, because the source should not run.
 * - `ended`: this worker aborted the poll.
 */
export interface PolledOnce {
  readonly result: SourceEnd["kind"] | "early" | "none" | "ended";
  /** Time of an additional poll, outside the schedule. */
  readonly againAtMs?: number | undefined;
  /** Time at which the source is due, if this poll was too early. Later intervals are counted from this time. */
  readonly dueAtMs?: number;
}

export interface PollOptions {
  readonly signal: AbortSignal;
  readonly skipBackoff: boolean;
  readonly lagMs: number;
  /**
   * Set if a wake requested this poll. The poll then only waits for the minimum time between wakes, not for the interval of the source.
   * Called directly before the first request: wakes that arrive later need another poll.
   */
  readonly onWakeStarts?: (() => Promise<void>) | undefined;
}

/** How long an aborted poll may take to end, in ms. After that, the worker ignores its result. */
const ABORT_GRACE_MS = 1_000;
/** Maximum time by which a poll may start too early, in ms. Such a poll waits for its due time instead of ending. */
const SHORT_WAIT_MS = 250;

/**
 * Runs one poll of a source and stores its result. The caller must have reserved the concurrency limits. If `signal` aborts, the result is
 * ignored.
 *
 * @throws UnavailableError when the run cannot be opened
 */
export async function pollOnce(
  deps: PollsContext,
  target: PollTarget,
  options: PollOptions,
): Promise<PolledOnce> {
  const { runs, owner, clock, deadlineMs, wakeSpacingMs: maxWakeSpacingMs } = deps;
  const { signal, skipBackoff, lagMs, onWakeStarts } = options;
  const { source, polled, spacing } = target;
  const wakeSpacingMs =
    onWakeStarts && Math.min(maxWakeSpacingMs, spacing?.intervalMs ?? Number.POSITIVE_INFINITY);
  const { number } = source.identity;
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), deadlineMs);
  try {
    const runSignal = AbortSignal.any([signal, deadline.signal]);
    const open = (): Promise<OpeningRun | undefined> =>
      runs
        .openRun(number, { signal: runSignal, owner, skipBackoff, wakeSpacingMs, spacing, lagMs })
        .catch((error) => {
          if (!(error instanceof StaleSourceError || runSignal.aborted)) throw error;
          return undefined;
        });
    let opening = await open();
    while (opening?.kind === "interval" && opening.waitMs <= SHORT_WAIT_MS && !runSignal.aborted) {
      await sleep(opening.waitMs, runSignal);
      opening = await open();
    }
    if (opening === undefined) return { result: "ended" };
    if (opening.kind === "none") return { result: "none" };
    if (opening.kind !== "open") {
      const dueAtMs = clock() + opening.waitMs;
      if (onWakeStarts !== undefined) return { result: "early", againAtMs: dueAtMs };
      if (spacing !== undefined) return { result: "early", dueAtMs };
      const next = nextPoll(target.plan, clock(), dueAtMs);
      return { result: "early", againAtMs: next.isExtra ? next.atMs : undefined };
    }
    const beganMs = performance.now();
    const plan = planFrom(target.plan, clock());
    const { open: run } = opening;
    let hasStarted = false;
    const poll = async (): Promise<SourceEnd> => {
      await onWakeStarts?.();
      hasStarted = true;
      return polled.poll(run);
    };
    const ended = await withinGrace(ABORT_GRACE_MS, poll(), runSignal).catch((error: unknown) =>
      runSignal.aborted ? undefined : endForThrownError(error, logOf(deps, target)),
    );
    const end = signal.aborted ? undefined : deadline.signal.aborted ? deadlineExceeded(deadlineMs) : ended;
    const retryAtMs = clock() + Math.max(0, (spacing?.retryMs ?? 0) - (performance.now() - beganMs));
    const next = planNextRun(end, plan, deps, { failures: run.failures, retryAtMs });
    const progress = end?.kind !== "done" ? undefined : next.isExtra ? "more" : "done";
    try {
      await run.end(end, { progress, nextAtMs: next.nextAtMs });
    } catch (error) {
      // The events and the cursor are already stored. Only the displayed result and a wait requested by the server are lost.
      logOf(deps, target).warn(
        { event: "poll.end_not_written", err: error },
        "could not record the end of a poll",
      );
    }
    // Without a started poll, the wake must run again.
    if (!hasStarted) return { result: "ended" };
    return { result: end?.kind ?? "ended", againAtMs: next.isExtra ? next.nextAtMs : undefined };
  } finally {
    clearTimeout(timer);
  }
}

/** Creates the logger of a channel on demand, because creating one takes as long as a query. */
const logOf = ({ log }: PollsContext, { source }: PollTarget): Log =>
  log.child(channelFacts(source.identity));

interface NextRun {
  /** Whether an additional poll is needed, because no scheduled poll runs at that time. */
  readonly isExtra: boolean;
  /** Time of the next run. `undefined` if only a person can resume the source. */
  readonly nextAtMs: number | undefined;
}

/** @param retryAtMs earliest time of the next run after a failure */
function planNextRun(
  end: SourceEnd | undefined,
  plan: JobPlan,
  { clock, random }: PollsContext,
  { failures, retryAtMs }: { readonly failures: number; readonly retryAtMs: number },
): NextRun {
  const nowMs = clock();
  switch (end?.kind) {
    case "failed": {
      const waitMs = failureWaitMs(failures, plan, nowMs, random());
      const notBeforeMs = Math.max(end.notBeforeMs ?? 0, nowMs + waitMs, retryAtMs);
      const { atMs, isExtra } = nextPoll(plan, nowMs, notBeforeMs);
      return { isExtra, nextAtMs: atMs };
    }
    case "done": {
      const { notBeforeMs = nowMs + 1 } = end;
      // The server has more items already, so the next poll starts at once.
      if (notBeforeMs <= nowMs) return { isExtra: true, nextAtMs: nowMs };
      return { isExtra: false, nextAtMs: nextTimeMs(plan, notBeforeMs) };
    }
    case undefined:
      return { isExtra: false, nextAtMs: nextTimeMs(plan, nowMs) };
    case "broken":
    case "needsReauth": {
      const { atMs, isExtra } = nextPoll(plan, nowMs, nowMs + SLOW_RETRY_MS);
      return { isExtra, nextAtMs: atMs };
    }
    case "finished":
      return { isExtra: false, nextAtMs: undefined };
    default:
      return end satisfies never;
  }
}

const deadlineExceeded = (deadlineMs: number): SourceEnd =>
  failed("deadline", `The poll did not finish within ${deadlineMs / 1_000} seconds`);
