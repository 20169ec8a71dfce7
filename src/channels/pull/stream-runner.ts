import { setTimeout as delay } from "node:timers/promises";
import { StaleSourceError } from "../../bus/errors.ts";
import { backoffMs } from "../../lib/backoff.ts";
import type { Clock } from "../../lib/clock.ts";
import { UnavailableError } from "../../lib/errors.ts";
import type { Log } from "../../log.ts";
import type { ReconnectPolicy, SourceEnd, StreamSource } from "../source.ts";
import type { OpeningRun, OpenRun, SourceRuns } from "./source-runs.ts";
import type { Admission } from "./start-gate.ts";

export interface StreamRunnerDeps {
  readonly runs: SourceRuns;
  readonly stream: StreamSource;
  /** This worker's name. */
  readonly owner: string;
  /** Lets only so many begin at a time. */
  readonly admit: (options: { readonly signal: AbortSignal }) => Promise<Admission>;
  readonly clock: Clock;
  readonly random: () => number;
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
  const { runs, stream, owner, admit, clock, random } = deps;
  const log = deps.log.child({ channel: channelNumber });
  const stopping = new AbortController();
  let state: StreamState = "waiting";
  let restarting = new AbortController();
  let skipBackoff = false;
  /** Times in a row that a run could not even begin, or was taken away. */
  let misses = 0;

  /** One run. Answers how long to wait before the next one. */
  async function runOnce(signal: AbortSignal): Promise<number> {
    const admission = await admit({ signal });
    try {
      state = "connecting";
      const opening = await begin(signal);
      switch (opening.kind) {
        case "none":
          // Whoever started it hears of that soon; if not, this looks again.
          return ENGINE.maxMs;
        case "backoff":
          return opening.waitMs;
        case "open":
          return await runOpened(opening.open, admission);
        default:
          return opening satisfies never;
      }
    } finally {
      admission.done();
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

  async function runOpened(open: OpenRun, admission: Admission): Promise<number> {
    const { run } = open;
    const policy = stream.reconnect(run.settings);
    let openedAtMs: number | undefined;
    const opened = (): void => {
      openedAtMs ??= performance.now();
      state = "open";
      admission.done();
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
    await open.end(end, { nextAtMs, failures });
    return Math.max(0, nextAtMs - clock());
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
      const end = await withinGrace(running, signal);
      if (end === undefined) log.error("a stream does not end; its next run fences it");
      return end === undefined || signal.aborted ? "left" : end;
    } catch (error) {
      if (signal.aborted) return "left";
      // The next run finds out where the source stands.
      if (error instanceof StaleSourceError) return "stale";
      if (error instanceof UnavailableError) {
        log.debug({ err: error }, "a stream could not be written");
        return { kind: "failed", code: "unavailable", message: "What came could not be published." };
      }
      log.error({ err: error }, "a stream ended with an error of its kind");
      return { kind: "failed", code: "internal", message: "The stream ended with an internal error." };
    }
  }

  async function attempt(signal: AbortSignal): Promise<number> {
    try {
      return await runOnce(signal);
    } catch (error) {
      if (signal.aborted) return 0;
      misses++;
      const isExpected = error instanceof StaleSourceError || error instanceof UnavailableError;
      if (isExpected) log.debug({ err: error }, "a stream has to begin again");
      else log.error({ err: error }, "a stream cannot be held");
      return backoffMs(ENGINE, misses, random);
    }
  }

  async function keepGoing(): Promise<void> {
    while (!stopping.signal.aborted) {
      const signal = AbortSignal.any([stopping.signal, restarting.signal]);
      const waitMs = await attempt(signal);
      if (!signal.aborted) await delay(waitMs, undefined, { signal }).catch(() => {});
      if (restarting.signal.aborted) restarting = new AbortController();
    }
  }

  const going = keepGoing();
  return {
    state: () => state,
    restart() {
      skipBackoff = true;
      misses = 0;
      restarting.abort();
    },
    async stop() {
      stopping.abort();
      await going;
    },
  };
}

/** Undefined where it goes on for too long after the abort. */
async function withinGrace<T>(work: Promise<T>, signal: AbortSignal): Promise<T | undefined> {
  const { promise: late, resolve } = Promise.withResolvers<undefined>();
  let timer: NodeJS.Timeout | undefined;
  const onAbort = (): void => {
    timer = setTimeout(resolve, MAX_ENDING_MS, undefined);
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) onAbort();
  try {
    return await Promise.race([work, late]);
  } finally {
    signal.removeEventListener("abort", onAbort);
    clearTimeout(timer);
  }
}
