import { StaleSourceError } from "../../../bus/errors.ts";
import { backoffMs } from "../../../lib/backoff.ts";
import type { Clock } from "../../../lib/clock.ts";
import { UnavailableError } from "../../../lib/errors.ts";
import { sleep } from "../../../lib/sleep.ts";
import { withinGrace } from "../../../lib/wait.ts";
import type { FairLimiter } from "../../../limits/fairness.ts";
import type { Log } from "../../../log.ts";
import type { ReconnectPolicy, SourceEnd, StreamRun, StreamSource } from "../../source.ts";
import type { OpenRun } from "../open-run.ts";
import { endForThrownError } from "../source-end.ts";
import type { OpeningRun, SourceRuns } from "../source-runs.ts";

export interface StreamRunnerDeps {
  readonly runs: SourceRuns;
  readonly stream: StreamSource;
  readonly owner: string;
  readonly starts: FairLimiter;
  readonly clock: Clock;
  readonly random: () => number;
  readonly log: Log;
}

export type StreamState = "connecting" | "open" | "waiting";

/** Maximum time for which a connecting stream counts against the limit on simultaneous connection attempts, in ms. */
const MAX_START_MS = 2_000;
const MAX_WAIT_MS = 24 * 3_600_000;
/** How long an aborted run may take to end, in ms. */
const MAX_ENDING_MS = 10_000;
/**
 * Backoff after attempts that did not reach the server or lost the source to another worker. The channel's own reconnect settings apply
 * only to failures of the server.
 */
const ENGINE_BACKOFF: ReconnectPolicy = {
  initialMs: 250,
  maxMs: 10_000,
  factor: 2,
  jitter: 0.5,
  resetAfterMs: 60_000,
};

/** Keeps one stream open: starts a run, waits after its end, and starts the next run, until it is stopped. */
export class StreamRunner {
  readonly #channelNumber: number;
  readonly #deps: StreamRunnerDeps;
  readonly #running: Promise<void>;
  #state: StreamState = "waiting";
  /** Aborts the current run or the wait before the next run. */
  #current = new AbortController();
  #isStopping = false;
  #skipBackoff = false;
  /** Number of consecutive attempts that did not reach the server or lost the source to another worker. */
  #failedStarts = 0;
  #openedAtMs: number | undefined;
  #start: Disposable | undefined;
  #startTimer: NodeJS.Timeout | undefined;

  constructor(channelNumber: number, deps: StreamRunnerDeps) {
    this.#channelNumber = channelNumber;
    this.#deps = deps;
    this.#running = Promise.resolve().then(() => this.#run());
  }

  get state(): StreamState {
    return this.#state;
  }

  /** Ends the current run or wait and starts a new run immediately. */
  restart(): void {
    this.#skipBackoff = true;
    this.#failedStarts = 0;
    this.#current.abort();
  }

  /** Stops the stream. Resolves when its last run has ended. */
  stop(): Promise<void> {
    this.#isStopping = true;
    this.#current.abort();
    return this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#isStopping) {
      this.#current = new AbortController();
      const { signal } = this.#current;
      await sleep(await this.#runOnce(signal), signal);
    }
  }

  /** Runs the stream once and returns the wait before the next run, in ms. */
  async #runOnce(signal: AbortSignal): Promise<number> {
    const { log, random, starts } = this.#deps;
    try {
      this.#start = await starts.acquire(1, { signal });
      this.#startTimer = setTimeout(() => this.#releaseStart(), MAX_START_MS).unref();
      this.#state = "connecting";
      const opening = await this.#openRun(signal);
      if (opening.kind === "open") return await this.#runOpened(opening.open);
      // Normally the supervisor stops a stream that must not run. This wait is a fallback, after which the runner checks again.
      return opening.kind === "none" ? ENGINE_BACKOFF.maxMs : opening.waitMs;
    } catch (error) {
      if (signal.aborted) return 0;
      this.#failedStarts++;
      const isExpected = error instanceof StaleSourceError || error instanceof UnavailableError;
      if (isExpected) log.debug({ event: "source.not_opened", err: error }, "could not start a stream");
      else log.error({ event: "source.failed", err: error }, "stream failed unexpectedly");
      return backoffMs(ENGINE_BACKOFF, this.#failedStarts, random);
    } finally {
      this.#releaseStart();
      this.#state = "waiting";
    }
  }

  #releaseStart(): void {
    clearTimeout(this.#startTimer);
    this.#start?.[Symbol.dispose]();
    this.#startTimer = undefined;
    this.#start = undefined;
  }

  async #openRun(signal: AbortSignal): Promise<OpeningRun> {
    const { runs, owner } = this.#deps;
    const skipBackoff = this.#skipBackoff;
    this.#skipBackoff = false;
    this.#openedAtMs = undefined;
    const onOpened = (): void => {
      // This run has already ended, so it must not change the state.
      if (signal.aborted) return;
      this.#openedAtMs = performance.now();
      this.#state = "open";
      this.#releaseStart();
    };
    try {
      return await runs.openRun(this.#channelNumber, { signal, owner, skipBackoff, onOpened });
    } catch (error) {
      this.#skipBackoff ||= skipBackoff;
      throw error;
    }
  }

  async #runOpened(open: OpenRun): Promise<number> {
    const { stream, clock, random } = this.#deps;
    const policy = stream.reconnect(open.config);
    const end = await this.#runToEnd(stream, open);
    const openMs = this.#openedAtMs === undefined ? 0 : performance.now() - this.#openedAtMs;
    if (end === "stale") {
      if (openMs >= ENGINE_BACKOFF.resetAfterMs) this.#failedStarts = 0;
      this.#failedStarts++;
      await open.end(undefined);
      return backoffMs(ENGINE_BACKOFF, this.#failedStarts, random);
    }
    if (end === "left") {
      await open.end(undefined);
      return 0;
    }
    this.#failedStarts = 0;
    // Resets the backoff only if the stream stayed open or received an event. A server that closes each new stream immediately gets a
    // growing wait.
    const wasGood = openMs >= policy.resetAfterMs || (end.kind === "done" && open.hasWritten());
    const failures = wasGood ? 1 : open.failures + 1;
    const nextAtMs = this.#computeNextAtMs(end, failures, policy);
    const waitMs = nextAtMs - clock();
    const endedMs = performance.now();
    await open.end(end, { nextAtMs, failures });
    return Math.max(0, waitMs - (performance.now() - endedMs));
  }

  #computeNextAtMs(end: SourceEnd, failures: number, policy: ReconnectPolicy): number {
    const { clock, random } = this.#deps;
    const nowMs = clock();
    const notBeforeMs = Math.min(("notBeforeMs" in end && end.notBeforeMs) || 0, nowMs + MAX_WAIT_MS);
    // The run did not fail, so the next run starts at the time that the channel kind requested.
    if (end.kind === "done" && notBeforeMs > 0 && failures === 1) return Math.max(nowMs, notBeforeMs);
    return Math.max(nowMs + backoffMs(policy, failures, random), notBeforeMs);
  }

  /**
   * Runs the stream until it ends. `left` means that this worker stopped it. `stale` means that another worker now runs it or its cursor
   * was set.
   */
  async #runToEnd(stream: StreamSource, run: StreamRun): Promise<SourceEnd | "left" | "stale"> {
    const { log } = this.#deps;
    const { signal } = run;
    try {
      const end = await withinGrace(MAX_ENDING_MS, stream.runConnection(run), signal);
      if (end === undefined)
        log.error({ event: "source.not_ended" }, "stream did not end in time; its next run fences it");
      return end === undefined || signal.aborted ? "left" : end;
    } catch (error) {
      // After `stale`, the next run reads the newly stored cursor.
      return signal.aborted ? "left" : (endForThrownError(error, log) ?? "stale");
    }
  }
}
