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

/** The outcome of a poll: how it ended, `early` (its backoff is not over) and `none` as `OpeningRun` has them, or `ended` from here. */
export interface PolledOnce {
  readonly result: SourceEnd["kind"] | "early" | "none" | "ended";
  /** When the source should be polled beside its plan. */
  readonly againAtMs?: number | undefined;
  /** It has come too early: its interval is to be counted from then on. */
  readonly dueAtMs?: number;
}

/** Once its signal has aborted a poll may take so long to end; then it is left behind. */
const ABORT_GRACE_MS = 1_000;
/** One that comes so little too early waits in its place. */
const SHORT_WAIT_MS = 250;

/**
 * One poll of a source whose slots are taken: opens a run, lets the kind poll, writes down how it ended and when it goes on.
 * `signal` ends it from here (pause, hand-over), and nothing of how it ended counts. A fresh one does not wait for what failed.
 *
 * @throws UnavailableError when the run could not be opened.
 */
export async function pollOnce(
  deps: PollsContext,
  target: PollTarget,
  options: { readonly signal: AbortSignal; readonly skipBackoff: boolean; readonly lagMs: number },
): Promise<PolledOnce> {
  const { runs, owner, clock, deadlineMs } = deps;
  const { signal, skipBackoff, lagMs } = options;
  const { source, polled, spacing } = target;
  const { number } = source.identity;
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), deadlineMs);
  try {
    const runSignal = AbortSignal.any([signal, deadline.signal]);
    const open = (): Promise<OpeningRun | undefined> =>
      runs.openRun(number, { signal: runSignal, owner, skipBackoff, spacing }).catch((error) => {
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
      if (spacing !== undefined) return { result: "early", dueAtMs };
      const next = nextPoll(target.plan, clock(), dueAtMs);
      return { result: "early", againAtMs: next.isExtra ? next.atMs : undefined };
    }
    const beganMs = performance.now();
    const plan = planFrom(target.plan, clock());
    const { open: openRun } = opening;
    const { run, failures } = openRun;
    openRun.report({ lagMs });
    const ended = await withinGrace(ABORT_GRACE_MS, (async () => polled.poll(run))(), runSignal).catch(
      (error: unknown) => (runSignal.aborted ? undefined : endForThrownError(error, logOf(deps, target))),
    );
    const end = signal.aborted ? undefined : deadline.signal.aborted ? deadlineExceeded(deadlineMs) : ended;
    const retryAtMs = clock() + Math.max(0, (spacing?.retryMs ?? 0) - (performance.now() - beganMs));
    const next = planNextRun(end, plan, deps, { failures, retryAtMs });
    const progress = end?.kind !== "done" ? undefined : next.isExtra ? "more" : "done";
    try {
      await openRun.end(end, { progress, nextAtMs: next.nextAtMs });
    } catch (error) {
      // Published events stand with their cursor. Lost are the visible end, and a wait that was asked for.
      logOf(deps, target).warn(
        { event: "poll.end_not_written", err: error },
        "end of a poll could not be written",
      );
    }
    return { result: end?.kind ?? "ended", againAtMs: next.isExtra ? next.nextAtMs : undefined };
  } finally {
    clearTimeout(timer);
  }
}

/** Made only where there is something to say: it costs as much as a query. */
const logOf = ({ log }: PollsContext, { source }: PollTarget): Log =>
  log.child(channelFacts(source.identity));

interface NextRun {
  /** True where it goes on beside its plan. */
  readonly isExtra: boolean;
  /** Undefined where it goes on when a person says so. */
  readonly nextAtMs: number | undefined;
}

/** When the source goes on after such an end. @param retryAtMs after a failure, at the earliest */
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
      // There is more, and nothing to wait for.
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
  failed("deadline", `the poll was not over after ${deadlineMs / 1_000} seconds`);
