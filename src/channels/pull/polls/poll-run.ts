import { StaleSourceError } from "../../../bus/errors.ts";
import { type JobPlan, nextTimeMs } from "../../../bus/jobs/job-plan.ts";
import { channelFacts } from "../../../event/channel.ts";
import type { Clock } from "../../../lib/clock.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { sleep, withinGrace } from "../../../lib/wait.ts";
import type { Log } from "../../../log.ts";
import type { SourceEnd } from "../../source.ts";
import type { OpeningRun, SourceRuns } from "../source-runs.ts";
import type { PollTarget } from "./poll-target.ts";
import { failureWaitMs, nextPoll, planFrom } from "./poll-timing.ts";

export interface PollRunDeps {
  readonly runs: SourceRuns;
  /** This worker's name, as a source's state shows it. */
  readonly owner: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** How long one poll may take. */
  readonly deadlineMs: number;
}

/** The outcome of a poll: how it ended, `early` (its backoff is not over) and `none` as `OpeningRun` has them, or `ended` from here. */
export interface PolledOnce {
  readonly result: SourceEnd["kind"] | "early" | "none" | "ended";
  /** When the source should be polled beside its plan. */
  readonly againAtMs?: number;
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
  deps: PollRunDeps,
  target: PollTarget,
  options: { readonly signal: AbortSignal; readonly skipBackoff: boolean; readonly lagMs: number },
): Promise<PolledOnce> {
  const { runs, owner, clock, log, random, deadlineMs } = deps;
  const { signal, skipBackoff, lagMs } = options;
  const { source, polled, spacing } = target;
  const { number } = source.identity;
  const facts = channelFacts(source.identity);
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(), deadlineMs);
  try {
    const running = AbortSignal.any([signal, deadline.signal]);
    const open = (): Promise<OpeningRun | undefined> =>
      runs.openRun(number, { signal: running, owner, skipBackoff, spacing }).catch((error) => {
        if (!(error instanceof StaleSourceError || running.aborted)) throw error;
        return undefined;
      });
    let opening = await open();
    while (opening?.kind === "interval" && opening.waitMs <= SHORT_WAIT_MS && !running.aborted) {
      await sleep(opening.waitMs, running);
      opening = await open();
    }
    if (opening === undefined) return { result: "ended" };
    if (opening.kind === "none") return { result: "none" };
    if (opening.kind !== "open") {
      const dueAtMs = clock() + opening.waitMs;
      if (spacing !== undefined) return { result: "early", dueAtMs };
      const next = nextPoll(target.plan, clock(), dueAtMs);
      return { result: "early", ...(next.isExtra ? { againAtMs: next.atMs } : {}) };
    }
    const beganAtMs = clock();
    const plan = planFrom(target.plan, beganAtMs);
    const { run, failures, report, end: writeEnd } = opening.open;
    report({ lagMs });
    const ended = await withinGrace(ABORT_GRACE_MS, (async () => polled.poll(run))(), running).catch(
      (error: unknown) =>
        failureOf(error, (unexpected) => {
          if (!running.aborted)
            log.error({ event: "poll.failed", err: unexpected, ...facts }, "poll failed unexpectedly");
        }),
    );
    const end = signal.aborted ? undefined : deadline.signal.aborted ? overdue(deadlineMs) : ended;
    const retryAtMs = beganAtMs + (spacing?.retryMs ?? 0);
    const went = whatNext(end, { plan, failures, nowMs: clock(), retryAtMs, random });
    const progress = end?.kind !== "done" ? undefined : went.isExtra ? "more" : "done";
    try {
      await writeEnd(end, { progress, ...(went.nextAtMs === undefined ? {} : { nextAtMs: went.nextAtMs }) });
    } catch (error) {
      // Published events stand with their cursor. Lost are the visible end, and a wait that was asked for.
      log.warn({ event: "poll.end_not_written", err: error, ...facts }, "end of a poll could not be written");
    }
    return { result: end?.kind ?? "ended", ...(went.isExtra ? { againAtMs: went.nextAtMs } : {}) };
  } finally {
    clearTimeout(timer);
  }
}

type WhatNext =
  | { readonly isExtra: true; readonly nextAtMs: number }
  | { readonly isExtra: false; readonly nextAtMs: number | undefined };

/** When the source goes on after such an end, and whether that is beside its plan. */
function whatNext(
  end: SourceEnd | undefined,
  options: {
    readonly plan: JobPlan;
    readonly failures: number;
    readonly nowMs: number;
    /** After a failure, at the earliest. */
    readonly retryAtMs: number;
    readonly random: () => number;
  },
): WhatNext {
  const { plan, failures, nowMs, retryAtMs, random } = options;
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
    // It goes on when a person says so.
    case "finished":
    case "broken":
    case "needsReauth":
      return { isExtra: false, nextAtMs: undefined };
    default:
      return end satisfies never;
  }
}

/** The end of a poll that threw; undefined where the source is another's now. */
function failureOf(error: unknown, onUnexpected: (error: unknown) => void): SourceEnd | undefined {
  if (error instanceof StaleSourceError) return undefined;
  if (error instanceof UnavailableError) {
    return { kind: "failed", code: "unavailable", message: "what was fetched could not be published" };
  }
  onUnexpected(error);
  return { kind: "failed", code: "internal", message: "the poll has failed unexpectedly" };
}

const overdue = (deadlineMs: number): SourceEnd => ({
  kind: "failed",
  code: "deadline",
  message: `the poll was not over after ${deadlineMs / 1_000} seconds`,
});
