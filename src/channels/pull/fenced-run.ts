import { StaleSourceError } from "../../bus/errors.ts";
import type { AcquiredSource, RunEnding } from "../../bus/sources/source-positions.ts";
import type { SourceFacts } from "../../bus/sources/source-states.ts";
import type { FetchedOptions, IngestResult } from "../../event/ingest.ts";
import type { SourcePosition, VerifiedDelivery } from "../../event/received.ts";
import type { Limiter } from "../../lib/limiter.ts";
import type { FetchedDelivery, SourceEnd, StreamRun } from "../source.ts";
import type { OpenRun, RunDeps, RunPlan, SourceChannel } from "./open-run.ts";
import { OrderedWrites } from "./ordered-writes.ts";
import { SLOW_RETRY_MS } from "./source-end.ts";
import { SourceReport } from "./source-report.ts";

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
const NO_QUERY = Object.freeze(Object.create(null));

export interface FencedRunOptions<C> {
  readonly channel: C;
  readonly acquired: AcquiredSource;
  /** Whether the source has run before, on any worker. */
  readonly hasRunBefore: boolean;
  readonly owner: string;
  readonly signal: AbortSignal;
  readonly onOpened: (() => void) | undefined;
}

interface Written {
  readonly cursor?: string;
  readonly signal: AbortSignal;
  /** Number of items in the deliveries, if known before the write. */
  readonly items?: number | undefined;
}

/**
 * One run of a source that this worker has acquired. Every write includes the source's epoch, so Redis rejects it if another worker has
 * taken over. Writes keep their order. The class is a single object per open stream to save memory, because a worker may have thousands of
 * streams.
 */
export class FencedRun<C extends SourceChannel> implements OpenRun, StreamRun {
  readonly channel: C;
  readonly config: unknown;
  readonly credentials: StreamRun["credentials"];
  readonly cursor: string | undefined;
  readonly startedAtMs: number;
  readonly signal: AbortSignal;
  readonly failures: number;
  readonly #deps: RunDeps<C>;
  readonly #inFlight: Limiter;
  readonly #epoch: number;
  readonly #hasRunBefore: boolean;
  readonly #onOpened: (() => void) | undefined;
  readonly #writes: OrderedWrites;
  readonly #report: SourceReport;
  #isOpen = false;
  #hasWritten = false;
  #isHealthy: boolean;
  #healthyTimer: NodeJS.Timeout | undefined;
  /** Whether the channel kind itself reports how far the source is behind. Its value is more accurate than the one measured here. */
  #isLagReported = false;

  constructor(deps: RunDeps<C>, inFlight: Limiter, options: FencedRunOptions<C>) {
    const { channel, acquired, hasRunBefore, owner, signal, onOpened } = options;
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
    this.#deps = deps;
    this.#inFlight = inFlight;
    this.#epoch = epoch;
    this.#hasRunBefore = hasRunBefore;
    this.#onOpened = onOpened;
    this.#writes = new OrderedWrites({ version: acquired.version, isPipelined: deps.isPipelined });
    this.#report = new SourceReport((facts) => states.write(number, epoch, facts, clock()));
    this.#isHealthy = channel.state === "active";
    this.#report.note({ state: "connecting", owner, nextAtMs: null });
    // A source that has run before must have a stored cursor. A missing cursor means that Redis has lost data.
    if (acquired.isFirst && hasRunBefore) {
      deps.observe({ kind: "cursorLost", channel });
      this.warn("cursor_lost", CURSOR_LOST);
    }
  }

  get run(): StreamRun {
    return this;
  }

  // Arrow functions keep `this` when a channel kind destructures the run.
  readonly ingest: StreamRun["ingest"] = (delivery, options) =>
    this.#publish([delivery], options, (written) =>
      this.#deps.ingest(this.channel, toVerifiedDelivery(delivery), written),
    );

  readonly ingestAll: StreamRun["ingestAll"] = async (deliveries, { cursorAfter, signal }) => {
    const { pace, gather } = this.#deps;
    const maxBatch = pace.maxBatchSize(this.channel.identity.organizationId);
    const sent: Promise<readonly IngestResult[]>[] = [];
    for (let from = 0; from < deliveries.length; ) {
      const most = deliveries.slice(from, from + maxBatch);
      for (const { count, items, write } of gather(this.channel, most.map(toVerifiedDelivery))) {
        const written = deliveries.slice(from, from + count);
        from += count;
        sent.push(this.#publish(written, { cursor: cursorAfter(from - 1), signal, items }, write));
      }
    }
    return (await Promise.all(sent)).flat();
  };

  readonly moveTo: StreamRun["moveTo"] = (cursor, { signal }) =>
    this.#fenced(
      this.#writes.add(async (version) => {
        this.signal.throwIfAborted();
        const position = this.#positionAt(version, cursor);
        await this.#deps.move(this.channel, { signal, position });
        await this.#recover();
      }),
    );

  readonly opened = (): void => {
    if (this.#isOpen) return;
    this.#isOpen = true;
    this.#onOpened?.();
    this.#deps.observe({ kind: "opened", channel: this.channel, isAgain: this.#hasRunBefore });
    this.#report.note({ state: "open" });
    if (!this.#isHealthy) this.#healthyTimer = setTimeout(() => this.#recover(), HEALTHY_AFTER_MS);
  };

  readonly warn = (code: string, message: string): void => {
    this.#report.note({ lastError: this.#errorOf(code, message) });
  };

  hasWritten(): boolean {
    return this.#hasWritten;
  }

  report(facts: { readonly lagMs?: number }): void {
    this.#isLagReported ||= facts.lagMs !== undefined;
    this.#report.note(facts);
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

  async #fenced<T>(write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      if (error instanceof StaleSourceError)
        this.#deps.observe({ kind: "refused", channel: this.channel, stale: error.stale });
      throw error;
    }
  }

  /** Publishes deliveries in one write. First waits for all earlier writes and for the organization's rate limit. */
  #publish<T extends IngestResult | readonly IngestResult[]>(
    deliveries: readonly FetchedDelivery[],
    options: Written,
    write: (options: FetchedOptions) => Promise<T>,
  ): Promise<T> {
    return this.#fenced(this.#writes.add((version) => this.#publishNow(deliveries, version, options, write)));
  }

  async #publishNow<T extends IngestResult | readonly IngestResult[]>(
    deliveries: readonly FetchedDelivery[],
    version: number,
    options: Written,
    write: (options: FetchedOptions) => Promise<T>,
  ): Promise<T> {
    const { pace, clock } = this.#deps;
    const whose = this.channel.identity.organizationId;
    const { items } = options;
    await pace.wait(whose, { signal: options.signal, count: deliveries.length, items });
    let bytes = 0;
    let arrivedAtMs = Number.POSITIVE_INFINITY;
    for (const delivery of deliveries) {
      bytes += delivery.body.length + DELIVERY_BYTES;
      arrivedAtMs = Math.min(arrivedAtMs, delivery.arrivedAtMs);
    }
    using _ = await this.#inFlight.acquire(bytes, { signal: options.signal, whose });
    // Another worker may own the source after the wait, and then this worker must not write.
    this.signal.throwIfAborted();
    const position = this.#positionAt(version, options.cursor);
    const result = await write({ signal: options.signal, position });
    if (items === undefined) pace.overdraw(whose, countItems(result) - deliveries.length);
    this.#hasWritten = true;
    await this.#recover();
    const nowMs = clock();
    this.#report.note({
      lastEventAtMs: nowMs,
      ...(this.#isLagReported ? {} : { lagMs: Math.max(0, nowMs - arrivedAtMs) }),
    });
    return result;
  }

  #positionAt(version: number, cursor: string | undefined): SourcePosition {
    const epoch = this.#epoch;
    return cursor === undefined ? { epoch, version } : { epoch, version, value: cursor };
  }

  async #recover(): Promise<void> {
    if (this.#isHealthy) return;
    this.#isHealthy = true;
    const { identity, version } = this.channel;
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
    if (end.kind === "done") await this.#recover();
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
    });
    if (found && (await setState({ number, version: channel.version }, found)))
      observe({ kind: "stopped", channel, state: found, end });
  }

  #errorFacts(end: SourceEnd): SourceFacts {
    switch (end.kind) {
      case "done":
        return {};
      case "failed":
      case "broken":
        return { lastError: this.#errorOf(end.code, end.message) };
      case "finished":
      case "needsReauth":
        return { lastError: this.#errorOf(end.kind, end.message) };
      default:
        return end satisfies never;
    }
  }
}

function countItems(written: IngestResult | readonly IngestResult[]): number {
  let items = 0;
  for (const result of [written].flat()) items += result.kind === "accepted" ? result.outcome.received : 1;
  return items;
}

const toVerifiedDelivery = ({ headers, body, arrivedAtMs, deliveryId }: FetchedDelivery): VerifiedDelivery =>
  deliveryId === undefined
    ? { method: "GET", headers, query: NO_QUERY, body, arrivedAtMs }
    : { method: "GET", headers, query: NO_QUERY, body, arrivedAtMs, deliveryId };

const CURSOR_LOST =
  "Redis has lost the cursor of this channel. The channel restarts at `startAt`, and does not fetch earlier events";

/** Channel state to set when a run ends. Ends that are not listed do not change the state. */
const STATE_AFTER: { readonly [K in SourceEnd["kind"]]?: "paused" | "error" | "needsReauth" } = {
  finished: "paused",
  broken: "error",
  needsReauth: "needsReauth",
};
