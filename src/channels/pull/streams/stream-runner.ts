import { StaleSourceError } from "../../../bus/errors.ts";
import { backoffMs } from "../../../lib/backoff.ts";
import type { Clock } from "../../../lib/clock.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import type { Limiter } from "../../../lib/limiter.ts";
import { startLoop } from "../../../lib/loop.ts";
import { withinGrace } from "../../../lib/wait.ts";
import type { Log } from "../../../log.ts";
import type { ReconnectPolicy, SourceEnd, StreamSource } from "../../source.ts";
import { endOfThrown } from "../ends.ts";
import type { OpeningRun, OpenRun, SourceRuns } from "../source-runs.ts";

export interface StreamRunnerDeps {
  readonly runs: SourceRuns;
  readonly stream: StreamSource;
  /** This worker's name. */
  readonly owner: string;
  /** One for each that begins: thousands at once would be in each other's way. */
  readonly starts: Limiter;
  readonly clock: Clock;
  readonly random: () => number;
  /** Its lines name the channel. */
  readonly log: Log;
}

export type StreamState = "connecting" | "open" | "waiting";

/** A stream that this worker keeps open. */
export interface StreamRunner {
  readonly state: () => StreamState;
  /** Ends the run under way, if there is one, and begins anew at once, whatever failed before. */
  readonly restart: () => void;
  /** Ends it for good. Resolves when nothing of it runs any more. */
  readonly stop: () => Promise<void>;
}

/** Streams that take longer to begin no longer keep others from it. */
const MAX_START_MS = 2_000;
const MAX_WAIT_MS = 24 * 3_600_000;
/** How long a run may take to end once it is told to. */
const MAX_ENDING_MS = 10_000;
/** Between tries that do not get as far as the sender, or are taken away: nothing says how those are to be repeated. */
const ENGINE: ReconnectPolicy = {
  initialMs: 250,
  maxMs: 10_000,
  factor: 2,
  jitter: 0.5,
  resetAfterMs: 60_000,
};

/** Runs a stream again and again until it is stopped. What happens is written by its runs; this decides when the next one begins. */
export function startStreamRunner(channelNumber: number, deps: StreamRunnerDeps): StreamRunner {
  const { runs, stream, owner, starts, clock, random, log } = deps;
  let state: StreamState = "waiting";
  let restarting = new AbortController();
  let waitMs = 0;
  let skipBackoff = false;
  /** Times in a row that a run could not even begin, or was taken away. */
  let misses = 0;

  /** One run. Answers how long to wait before the next one. */
  async function runOnce(signal: AbortSignal): Promise<number> {
    const start = await starts.acquire(1, { signal });
    const timer = setTimeout(() => start[Symbol.dispose](), MAX_START_MS).unref();
    const begun = (): void => {
      clearTimeout(timer);
      start[Symbol.dispose]();
    };
    try {
      state = "connecting";
      const opening = await begin(signal);
      if (opening.kind === "open") return await runOpened(opening.open, begun);
      // Of a source that should not run the supervisor hears soon; if not, this looks again.
      return opening.kind === "none" ? ENGINE.maxMs : opening.waitMs;
    } finally {
      begun();
      state = "waiting";
    }
  }

  async function begin(signal: AbortSignal): Promise<OpeningRun> {
    const wasFresh = skipBackoff;
    skipBackoff = false;
    try {
      return await runs.openRun(channelNumber, { signal, owner, skipBackoff: wasFresh });
    } catch (error) {
      skipBackoff ||= wasFresh;
      throw error;
    }
  }

  async function runOpened(open: OpenRun, begun: () => void): Promise<number> {
    const { run } = open;
    const policy = stream.reconnect(run.settings);
    let openedAtMs: number | undefined;
    const opened = (): void => {
      openedAtMs ??= performance.now();
      state = "open";
      begun();
      run.opened();
    };
    const openMs = (): number => (openedAtMs === undefined ? 0 : performance.now() - openedAtMs);
    const runConnection = async (): Promise<SourceEnd> => stream.runConnection({ ...run, opened });
    const end = await ended(runConnection(), run.signal);
    if (end === "stale") {
      if (openMs() >= ENGINE.resetAfterMs) misses = 0;
      misses++;
      await open.end(undefined);
      return backoffMs(ENGINE, misses, random);
    }
    if (end === "left") {
      await open.end(undefined);
      return 0;
    }
    misses = 0;
    // A sender that ends its streams and has sent nothing is left alone longer and longer, like one that fails.
    const wasGood = openMs() >= policy.resetAfterMs || (end.kind === "done" && open.hasWritten());
    const failures = wasGood ? 1 : open.failures + 1;
    const nextAtMs = nextOf(end, failures, policy);
    const waitMs = nextAtMs - clock();
    const endedMs = performance.now();
    await open.end(end, { nextAtMs, failures });
    return Math.max(0, waitMs - (performance.now() - endedMs));
  }

  function nextOf(end: SourceEnd, failures: number, policy: ReconnectPolicy): number {
    const nowMs = clock();
    const notBeforeMs = Math.min(("notBeforeMs" in end && end.notBeforeMs) || 0, nowMs + MAX_WAIT_MS);
    // Its kind says when, and nothing is wrong with it.
    if (end.kind === "done" && notBeforeMs > 0 && failures === 1) return Math.max(nowMs, notBeforeMs);
    return Math.max(nowMs + backoffMs(policy, failures, random), notBeforeMs);
  }

  /** How a run ended: by its sender, or by us, who left it or lost it to another. */
  async function ended(
    running: Promise<SourceEnd>,
    signal: AbortSignal,
  ): Promise<SourceEnd | "left" | "stale"> {
    try {
      const end = await withinGrace(MAX_ENDING_MS, running, signal);
      if (end === undefined)
        log.error({ event: "source.not_ended" }, "stream does not end; its next run fences it");
      return end === undefined || signal.aborted ? "left" : end;
    } catch (error) {
      // After a stale one the next run finds out where the source stands.
      return signal.aborted ? "left" : (endOfThrown(error, log) ?? "stale");
    }
  }

  async function attempt(signal: AbortSignal): Promise<number> {
    try {
      return await runOnce(signal);
    } catch (error) {
      if (signal.aborted) return 0;
      misses++;
      const isExpected = error instanceof StaleSourceError || error instanceof UnavailableError;
      if (isExpected)
        log.debug({ event: "source.not_opened", err: error }, "run of a stream could not begin");
      else log.error({ event: "source.failed", err: error }, "run of a stream failed unexpectedly");
      return backoffMs(ENGINE, misses, random);
    }
  }

  const loop = startLoop({
    async step(stopping) {
      restarting = new AbortController();
      waitMs = await attempt(AbortSignal.any([stopping, restarting.signal]));
    },
    everyMs: () => waitMs,
    onFailing: (err) => log.error({ event: "source.runner_failed", err }, "stream runner failed"),
  });
  return {
    state: () => state,
    restart() {
      skipBackoff = true;
      misses = 0;
      restarting.abort();
      loop.wake();
    },
    async stop() {
      await loop[Symbol.asyncDispose]();
    },
  };
}
