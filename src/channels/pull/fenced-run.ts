import { StaleSourceError } from "../../bus/errors.ts";
import type { AcquiredSource, RunEnding } from "../../bus/sources/source-positions.ts";
import type { SourceFacts } from "../../bus/sources/source-states.ts";
import type { FetchedOptions, GatheredWrite, IngestResult } from "../../event/ingest.ts";
import type { SourcePosition } from "../../event/received.ts";
import type { FairLimiter } from "../../limits/fairness.ts";
import type { FetchedDelivery, PollFacts, SourceEnd, StreamRun } from "../source.ts";
import type { OpenRun, ReconciledChannel, RunDeps, RunOptions, RunPlan, SourceChannel } from "./open-run.ts";
import { OrderedWrites } from "./ordered-writes.ts";
import { createReconcileRun } from "./reconcile-run.ts";
import { countItems, countPublished, recordPoll } from "./run-counts.ts";
import { SLOW_RETRY_MS } from "./source-end.ts";
import { SourceReport } from "./source-report.ts";
import { toVerifiedDelivery } from "./verified-delivery.ts";

/** Estimated memory of a delivery in flight, in bytes, not counting its body. */
const DELIVERY_BYTES = 512;
/** Maximum wait that a server can request. Otherwise a wrong `Retry-After` could stop the source forever. */
const MAX_WAIT_MS = 24 * 3_600_000;
const MAX_MESSAGE_CHARS = 500;
/**
 * Rejections count as persistent after this many in a row over this time. Fewer rejections may come from a server that is just restarting.
 */
const PERSISTENT_REJECTION = { count: 5, forMs: 10 * 60_000, retryInMs: SLOW_RETRY_MS };
/** Duration after which an open stream counts as healthy, even if it has received no events. */
const HEALTHY_AFTER_MS = 30_000;

export interface FencedRunOptions<C extends SourceChannel> extends RunOptions {
  readonly channel: C;
  /** The channel whose missed events the source publishes. `undefined` if it publishes its own. */
  readonly reconciled?: ReconciledChannel<C> | undefined;
  readonly acquired: AcquiredSource;
  /** Whether the source has run before, on any worker. */
  readonly hasRunBefore: boolean;
}

/**
 * One run of a source that this worker has acquired. Every write includes the source's epoch, so Redis rejects it if another worker has
 * taken over. Writes keep their order. The class is a single object per open stream to save memory, because a worker may have thousands of
 * streams.
 */
export class FencedRun<C extends SourceChannel> implements OpenRun {
  readonly channel: C;
  readonly config: unknown;
  readonly credentials: StreamRun["credentials"];
  readonly cursor: string | undefined;
  readonly startedAtMs: number;
  readonly signal: AbortSignal;
  readonly failures: number;
  readonly reconcile: StreamRun["reconcile"];
  /** The channel whose definitions apply and whose topics get the events. */
  readonly #target: C;
  readonly #deps: RunDeps<C>;
  readonly #inFlight: FairLimiter;
  readonly #epoch: number;
  readonly #hasRunBefore: boolean;
  readonly #onOpened: (() => void) | undefined;
  /** Whether the caller reports how far the source is behind. Its value is more accurate than the one measured here. */
  readonly #isLagGiven: boolean;
  readonly #writes: OrderedWrites;
  readonly #report: SourceReport;
  readonly #counts: { readonly beganMs: number; published: number };
  #poll: PollFacts | undefined;
  #isOpen = false;
  #hasWritten = false;
  /** Whether this run has had a success, which clears the error of earlier runs. */
  #isHealthy = false;
  #healthyTimer: NodeJS.Timeout | undefined;

  constructor(deps: RunDeps<C>, inFlight: FairLimiter, options: FencedRunOptions<C>) {
    const { channel, reconciled, acquired, hasRunBefore, owner, signal, onOpened, lagMs } = options;
    const { states, clock, credentialsOf } = deps;
    const { number } = channel.identity;
    const { epoch } = acquired;
    this.channel = channel;
    this.config = channel.kindConfig;
    this.credentials = channel.connectionId === null ? undefined : credentialsOf(channel.connectionId);
    this.cursor = acquired.value;
    this.startedAtMs = acquired.startedAtMs;
    this.signal = signal;
    this.failures = acquired.failures;
    this.#target = reconciled?.channel ?? channel;
    this.#deps = deps;
    this.#inFlight = inFlight;
    this.#epoch = epoch;
    this.#counts = { beganMs: clock(), published: 0 };
    this.#hasRunBefore = hasRunBefore;
    this.#onOpened = onOpened;
    this.#isLagGiven = lagMs !== undefined;
    this.#writes = new OrderedWrites({ version: acquired.version, isPipelined: deps.isPipelined });
    this.#report = new SourceReport((facts) => states.write(number, epoch, facts, clock()));
    this.#report.note({ state: "connecting", owner, nextAtMs: null, ...(lagMs !== undefined && { lagMs }) });
    this.reconcile =
      reconciled &&
      createReconcileRun(deps, {
        source: channel,
        reconciled,
        ingestAll: (...args) => this.ingestAll(...args),
        note: (facts) => this.#report.note(facts),
      });
    // A source that has run before must have a stored cursor. A missing cursor means that Redis has lost data.
    if (acquired.isFirst && hasRunBefore) {
      deps.observe({ kind: "cursorLost", channel });
      this.warn("cursor_lost", CURSOR_LOST);
    }
  }

  // Arrow functions keep `this` when a channel kind destructures the run.
  readonly ingest: StreamRun["ingest"] = async (delivery, { cursor, signal }) => {
    const [result] = await this.ingestAll([delivery], { cursorAfter: () => cursor, signal });
    if (result === undefined) throw new Error("a write of one delivery has no result");
    return result;
  };

  readonly ingestAll: StreamRun["ingestAll"] = async (deliveries, { cursorAfter, signal }) => {
    const { pace, gather } = this.#deps;
    const maxBatch = pace.maxBatchSize(this.channel.identity.organizationId);
    const sent: Promise<readonly IngestResult[]>[] = [];
    for (let from = 0; from < deliveries.length; ) {
      const most = deliveries.slice(from, from + maxBatch);
      for (const gathered of gather(this.#target, most.map(toVerifiedDelivery))) {
        const written = deliveries.slice(from, from + gathered.count);
        from += gathered.count;
        const cursor = cursorAfter(from - 1);
        const write = this.#write(cursor, (position) =>
          this.#publish(written, gathered, { signal, position }),
        );
        // If `cursorAfter` throws later, no caller handles the rejection.
        write.catch(() => {});
        sent.push(write);
      }
    }
    return (await Promise.all(sent)).flat();
  };

  readonly moveTo: StreamRun["moveTo"] = (cursor, { signal }) =>
    this.#write(cursor, async (position) => {
      this.signal.throwIfAborted();
      await this.#deps.move(this.channel, { signal, position });
      await this.#succeed();
    });

  readonly opened = (): void => {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#onOpened?.();
    this.#deps.observe({ kind: "opened", channel: this.channel, isAgain: this.#hasRunBefore });
    this.#report.note({ state: "open" });
    if (!this.#isHealthy) this.#healthyTimer = setTimeout(() => this.#succeed(), HEALTHY_AFTER_MS);
  };

  readonly notePoll = (facts: PollFacts): void => {
    this.#poll = facts;
  };

  readonly warn = (code: string, message: string): void => {
    this.#report.note({ lastWarning: this.#errorOf(code, message) });
  };

  hasWritten(): boolean {
    return this.#hasWritten;
  }

  async end(end: SourceEnd | undefined, plan: RunPlan = {}): Promise<void> {
    const nowMs = this.#deps.clock();
    await this.#writes.settled();
    try {
      if (end) await this.#writeEnd(end, plan, nowMs);
      else this.#report.note({ state: "waiting" });
    } finally {
      clearTimeout(this.#healthyTimer);
      await this.#report.close();
    }
  }

  /** Sends a write after all earlier writes, with the position that it stores. */
  async #write<T>(cursor: string, send: (position: SourcePosition) => Promise<T>): Promise<T> {
    try {
      const source = this.channel.identity.number;
      return await this.#writes.add((version) =>
        send({ source, epoch: this.#epoch, version, value: cursor }),
      );
    } catch (error) {
      if (error instanceof StaleSourceError)
        this.#deps.observe({ kind: "refused", channel: this.channel, stale: error.stale });
      throw error;
    }
  }

  /** Publishes deliveries in one write. First waits for the organization's rate limit. */
  async #publish(
    deliveries: readonly FetchedDelivery[],
    { items, write }: GatheredWrite,
    options: FetchedOptions,
  ): Promise<readonly IngestResult[]> {
    const { pace, clock } = this.#deps;
    const owner = this.channel.identity.organizationId;
    const { signal } = options;
    await pace.wait(owner, { signal, count: deliveries.length, items });
    let bytes = 0;
    let arrivedAtMs = Number.POSITIVE_INFINITY;
    for (const delivery of deliveries) {
      bytes += delivery.body.length + DELIVERY_BYTES;
      arrivedAtMs = Math.min(arrivedAtMs, delivery.arrivedAtMs);
    }
    using _ = await this.#inFlight.acquire(bytes, { signal, owner });
    // Another worker may own the source after the wait, and then this worker must not write.
    this.signal.throwIfAborted();
    const results = await write(options);
    if (items === undefined) pace.overdraw(owner, countItems(results) - deliveries.length);
    this.#hasWritten = true;
    this.#counts.published += countPublished(results);
    await this.#succeed();
    const nowMs = clock();
    this.#report.note({
      lastEventAtMs: nowMs,
      ...(this.#isLagGiven ? {} : { lagMs: Math.max(0, nowMs - arrivedAtMs) }),
    });
    return results;
  }

  /** Clears the error of earlier runs, and sets the state of a failing channel to active. */
  async #succeed(): Promise<void> {
    if (this.#isHealthy) return;
    this.#isHealthy = true;
    this.#report.note({ lastError: null });
    const { identity, state, version } = this.channel;
    if (state === "active") return;
    const { setState, observe } = this.#deps;
    const wasSet = await setState({ number: identity.number, version }, "active").catch(() => false);
    if (wasSet) observe({ kind: "recovered", channel: this.channel });
  }

  #errorOf(code: string, message: string) {
    return { code, message: message.slice(0, MAX_MESSAGE_CHARS), atMs: this.#deps.clock() };
  }

  /**
   * @param nowMs when the run ended. The caller reads the clock before earlier writes settle, because the clock may be adjusted meanwhile.
   */
  async #writeEnd(end: SourceEnd, plan: RunPlan, nowMs: number): Promise<void> {
    const { positions, setState, observe } = this.#deps;
    const { channel } = this;
    const { number } = channel.identity;
    observe({ kind: "ended", channel, end });
    if (end.kind === "done") await this.#succeed();
    const isSlow = end.kind === "broken" || end.kind === "needsReauth";
    const nextAtMs = isSlow ? nowMs + SLOW_RETRY_MS : plan.nextAtMs;
    const { failures = end.kind === "failed" || isSlow ? this.failures + 1 : 0 } = plan;
    const within = (ms: number | undefined): number =>
      ms === undefined ? 0 : Math.min(MAX_WAIT_MS, Math.max(0, ms - nowMs));
    const { isRejection = false, stateIfPersistent = "error" } = end.kind === "failed" ? end : {};
    const ending: RunEnding = {
      failures,
      notBeforeMs: within("notBeforeMs" in end ? end.notBeforeMs : undefined),
      retryInMs: failures > 0 ? within(nextAtMs) : 0,
      progress: plan.progress,
      refusal: isRejection ? PERSISTENT_REJECTION : end.kind === "done" ? "none" : undefined,
    };
    const written = await positions.end(number, this.#epoch, ending);
    // Another worker now owns the source, so this run must not change the source's state.
    if (written === "gone") return;
    const isLasting = written === "lasting";
    const found = isLasting ? stateIfPersistent : STATE_AFTER[end.kind];
    const waitMs = Math.max(ending.notBeforeMs, within(nextAtMs), isLasting ? SLOW_RETRY_MS : 0);
    this.#report.note({
      state: found ?? "waiting",
      nextAtMs: found !== "paused" && waitMs > 0 ? nowMs + waitMs : null,
      ...this.#errorFacts(end),
      ...(this.#poll && { poll: recordPoll(this.#poll, end, { ...this.#counts, nowMs }) }),
    });
    if (found && (await setState({ number, version: channel.version }, found)))
      observe({ kind: "stopped", channel, state: found, end });
  }

  #errorFacts(end: SourceEnd): SourceFacts {
    switch (end.kind) {
      case "done":
      case "finished":
        return { lastError: null };
      case "failed":
      case "broken":
        return { lastError: this.#errorOf(end.code, end.message) };
      case "needsReauth":
        return { lastError: this.#errorOf(end.kind, end.message) };
      default:
        return end satisfies never;
    }
  }
}

const CURSOR_LOST =
  "Redis has lost the cursor of this channel. The channel restarts at `startAt`, and does not fetch earlier events";

/** Channel state to set when a run ends. Ends that are not listed do not change the state. */
const STATE_AFTER: { readonly [K in SourceEnd["kind"]]?: "paused" | "error" | "needsReauth" } = {
  finished: "paused",
  broken: "error",
  needsReauth: "needsReauth",
};
