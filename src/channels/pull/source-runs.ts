import { StaleSourceError } from "../../bus/errors.ts";
import type {
  AcquiredSource,
  RunEnding,
  RunSpacing,
  SourcePositions,
} from "../../bus/sources/source-positions.ts";
import type { SourceFacts, SourceStates } from "../../bus/sources/source-states.ts";
import type { FoundState } from "../../data/channels/channel-states.ts";
import type {
  ChannelHandle,
  FetchedOptions,
  GatherFetched,
  IngestFetched,
  IngestResult,
} from "../../event/ingest.ts";
import type { SourcePosition, VerifiedDelivery } from "../../event/received.ts";
import type { Clock } from "../../lib/clock.ts";
import { createLimiter, type Limiter } from "../../lib/limiter.ts";
import type { CredentialsOf } from "../../net/credentials.ts";
import type { FetchedDelivery, SourceEnd, StreamRun } from "../source.ts";
import { SLOW_RETRY_MS } from "./ends.ts";
import { createOrderedWrites } from "./ordered-writes.ts";
import type { SourcePace } from "./source-pace.ts";
import { createSourceReport } from "./source-report.ts";

/** Begins runs: one connection of a stream, or one poll. */
export interface SourceRuns {
  /**
   * Takes the source over: its last owner is fenced from now on. Nothing is taken while the source is to be left alone.
   *
   * @param options.owner the worker's name, as the source's state shows it
   * @param options.skipBackoff do not wait for what failed before: a person has changed something
   * @param options.spacing how far runs are to be apart; absent: as near as they come
   * @throws UnavailableError when that cannot be known or done now.
   * @throws StaleSourceError when another worker takes it over at the same moment.
   */
  readonly openRun: (
    channelNumber: number,
    options: {
      readonly signal: AbortSignal;
      readonly owner: string;
      readonly skipBackoff?: boolean;
      readonly spacing?: RunSpacing | undefined;
    },
  ) => Promise<OpeningRun>;
}

export type OpeningRun =
  | { readonly kind: "open"; readonly open: OpenRun }
  /** Not before so many ms from now: its sender said so, or it failed; or the interval since the last run began is not over. */
  | { readonly kind: "backoff" | "interval"; readonly waitMs: number }
  /** It should not run: it is deleted, not active, or nobody asks for it. */
  | { readonly kind: "none" };

export interface OpenRun {
  readonly run: StreamRun;
  /** How many runs have failed in a row before this one, on whatever worker. */
  readonly failures: number;
  /** Whether a delivery of this run has been written. */
  readonly hasWritten: () => boolean;
  /** Adds to the source's state; written soon, not at once. */
  readonly report: (facts: { readonly lagMs?: number }) => void;
  /**
   * Writes down how the run ended: its state, the count of failures, and with `notBeforeMs` or after a failure until when the
   * source is left alone. Undefined: the run was ended from here (pause,
   * hand-over); nothing is counted. What the run still writes is waited for first.
   *
   * @throws UnavailableError
   */
  readonly end: (end: SourceEnd | undefined, plan?: RunPlan) => Promise<void>;
}

export interface RunPlan {
  /** When the next run is meant to begin. */
  readonly nextAtMs?: number | undefined;
  /** Failures in a row, this run included; default: one more after `failed`, none after any other end. */
  readonly failures?: number;
  readonly progress?: RunEnding["progress"];
}

/** A channel in force, as far as a run needs it. */
export interface SourceChannel extends ChannelHandle {
  readonly version: number;
  readonly connectionId: string | null;
}

export interface SourceRunsDeps<C extends SourceChannel = SourceChannel> {
  /** The channel in force; undefined where it is not active, or nobody asks for it. @throws UnavailableError */
  readonly findSource: (channelNumber: number) => Promise<C | undefined>;
  /** All topics that were ever written for it. */
  readonly listTopics: (channelNumber: number) => Promise<readonly string[]>;
  /** True where it is noted that the source has begun to run. @throws UnavailableError */
  readonly hasBegun: (channelNumber: number) => Promise<boolean>;
  /** Notes it. @throws UnavailableError */
  readonly noteBegun: (channelNumber: number) => Promise<void>;
  readonly credentialsOf: CredentialsOf;
  readonly positions: SourcePositions;
  readonly states: SourceStates;
  /** Keeps the deliveries of an organization's sources to its rate. */
  readonly pace: SourcePace;
  readonly ingest: IngestFetched<C>;
  readonly gather: GatherFetched<C>;
  readonly move: (
    channel: C,
    options: { readonly signal: AbortSignal; readonly position: SourcePosition },
  ) => Promise<void>;
  /** Sets a channel's state, unless it was written to since. True where it was another. */
  readonly setState: (
    channel: { readonly number: number; readonly version: number },
    state: FoundState,
  ) => Promise<boolean>;
  /** False where a write is seen before the cursor has moved with it (Cluster): then each waits for the one before. */
  readonly isPipelined: boolean;
  readonly clock: Clock;
  readonly observe: (event: SourceObservation) => void;
}

/** For counters and the log. */
export type SourceObservation =
  | { readonly kind: "ended"; readonly channel: ChannelHandle; readonly end: SourceEnd }
  | {
      readonly kind: "stopped";
      readonly channel: ChannelHandle;
      readonly state: FoundState;
      readonly end: SourceEnd;
    }
  | { readonly kind: "recovered" | "cursorLost"; readonly channel: ChannelHandle }
  /** The first answer of a run; `isAgain`: not of the first run that the source ever had. */
  | { readonly kind: "opened"; readonly channel: ChannelHandle; readonly isAgain: boolean }
  | { readonly kind: "refused"; readonly channel: ChannelHandle; readonly stale: "epoch" | "cursor" };

/** Of all sources together, on their way to the bus: less than what it takes, so that sources wait instead of being refused. */
const MAX_BYTES_UNDER_WAY = 16 * 1024 * 1024;

export function createSourceRuns<C extends SourceChannel>(deps: SourceRunsDeps<C>): SourceRuns {
  const { findSource, listTopics, hasBegun, noteBegun, positions } = deps;
  /** Sources of which it is noted that they have begun. */
  const begun = new Set<number>();
  const underWay = createLimiter(MAX_BYTES_UNDER_WAY);
  return {
    async openRun(channelNumber, { signal, owner, skipBackoff = false, spacing }) {
      const channel = await findSource(channelNumber);
      if (channel === undefined) return { kind: "none" };
      const topics = await listTopics(channelNumber);
      signal.throwIfAborted();
      const hadBegun = begun.has(channelNumber) || (await hasBegun(channelNumber));
      const taken = await positions.takeOver({ number: channelNumber, topics }, { skipBackoff, spacing });
      if (taken.kind !== "acquired") return taken;
      // Not before: Redis has lost nothing of a source that it could not take over.
      if (!hadBegun) await noteBegun(channelNumber);
      begun.add(channelNumber);
      return {
        kind: "open",
        open: startRun(deps, underWay, { channel, taken, hadBegun, owner, signal }),
      };
    },
  };
}

/** A delivery costs so much on its way besides its bytes. */
const DELIVERY_BYTES = 512;
/** Nobody asks for a longer wait in earnest, and who does so by mistake must not stop a source for good. */
const MAX_WAIT_MS = 24 * 3_600_000;
const MAX_MESSAGE_CHARS = 500;
/** So many refusals in a row, over so long, are no mistake of a moment: a restart, a maintenance page. */
const LASTING = { count: 5, forMs: 10 * 60_000, retryInMs: SLOW_RETRY_MS };
/** A stream that was open for so long is well, though nothing has come. */
const WELL_AFTER_MS = 30_000;
const NO_QUERY = Object.freeze(Object.create(null));

/** One run of a source that was taken over; all that it writes is fenced by its epoch and kept in order. */
function startRun<C extends SourceChannel>(
  deps: SourceRunsDeps<C>,
  underWay: Limiter,
  beginning: {
    readonly channel: C;
    readonly taken: AcquiredSource;
    /** True where it has run before. */
    readonly hadBegun: boolean;
    readonly owner: string;
    readonly signal: AbortSignal;
  },
): OpenRun {
  const { positions, states, pace, ingest, gather, move, setState, clock, observe } = deps;
  const { channel, taken, hadBegun, owner, signal } = beginning;
  const { number } = channel.identity;
  const { epoch } = taken;
  const writes = createOrderedWrites({ version: taken.version, isPipelined: deps.isPipelined });
  const report = createSourceReport((facts) => states.write(number, epoch, facts, clock()));
  report.note({ state: "connecting", owner, nextAtMs: null });
  let isOpen = false;
  let hasWritten = false;
  let isWell = channel.state === "active";
  let wellTimer: NodeJS.Timeout | undefined;
  /** True where the caller reports the lag itself: it knows better. */
  let isLagTold = false;

  async function fenced<T>(write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      if (error instanceof StaleSourceError) observe({ kind: "refused", channel, stale: error.stale });
      throw error;
    }
  }

  /** The source is well again: its channel says so. */
  async function recover(): Promise<void> {
    if (isWell) return;
    isWell = true;
    const wasSet = await setState({ number, version: channel.version }, "active").catch(() => false);
    if (wasSet) observe({ kind: "recovered", channel });
  }

  /** Sends deliveries as one write, after all before it and as fast as their organization may. */
  function publish<T>(
    deliveries: readonly FetchedDelivery[],
    options: { readonly cursor?: string; readonly signal: AbortSignal },
    write: (options: FetchedOptions) => Promise<T>,
  ): Promise<T> {
    return fenced(writes.add((version) => publishNow(deliveries, version, options, write)));
  }

  async function publishNow<T>(
    deliveries: readonly FetchedDelivery[],
    version: number,
    options: { readonly cursor?: string; readonly signal: AbortSignal },
    write: (options: FetchedOptions) => Promise<T>,
  ): Promise<T> {
    const whose = channel.identity.organizationId;
    await pace.wait(whose, { signal: options.signal, count: deliveries.length });
    let bytes = 0;
    let arrivedAtMs = Number.POSITIVE_INFINITY;
    for (const delivery of deliveries) {
      bytes += delivery.body.length + DELIVERY_BYTES;
      arrivedAtMs = Math.min(arrivedAtMs, delivery.arrivedAtMs);
    }
    using _ = await underWay.acquire(bytes, { signal: options.signal, whose });
    // Past its lease a run sends nothing more, whatever it has read.
    signal.throwIfAborted();
    const result = await write({ signal: options.signal, position: positionOf(version, options.cursor) });
    hasWritten = true;
    await recover();
    const nowMs = clock();
    report.note({
      lastEventAtMs: nowMs,
      ...(isLagTold ? {} : { lagMs: Math.max(0, nowMs - arrivedAtMs) }),
    });
    return result;
  }

  const positionOf = (version: number, cursor: string | undefined) =>
    cursor === undefined ? { epoch, version } : { epoch, version, value: cursor };

  const run: StreamRun = {
    channel,
    settings: channel.settings,
    credentials: channel.connectionId === null ? undefined : deps.credentialsOf(channel.connectionId),
    cursor: taken.value,
    startedAtMs: taken.startedAtMs,
    signal,
    ingest: (delivery, options) =>
      publish([delivery], options, (written) => ingest(channel, verifiedOf(delivery), written)),
    async ingestAll(deliveries, { cursorAfter, signal }) {
      const together = pace.mostTogether(channel.identity.organizationId);
      const sent: Promise<readonly IngestResult[]>[] = [];
      for (let from = 0; from < deliveries.length; ) {
        const most = deliveries.slice(from, from + together);
        for (const { count, write } of gather(channel, most.map(verifiedOf))) {
          const written = deliveries.slice(from, from + count);
          from += count;
          sent.push(publish(written, { cursor: cursorAfter(from - 1), signal }, write));
        }
      }
      return (await Promise.all(sent)).flat();
    },
    moveTo: (cursor, options) =>
      fenced(
        writes.add(async (version) => {
          signal.throwIfAborted();
          await move(channel, { signal: options.signal, position: positionOf(version, cursor) });
          await recover();
        }),
      ),
    opened() {
      if (isOpen) return;
      isOpen = true;
      observe({ kind: "opened", channel, isAgain: hadBegun });
      report.note({ state: "open" });
      if (!isWell) wellTimer = setTimeout(recover, WELL_AFTER_MS);
    },
    warn: (code, message) => report.note({ lastError: errorOf(code, message) }),
  };

  // Redis knows nothing of it any more.
  if (taken.isFirst && hadBegun) {
    observe({ kind: "cursorLost", channel });
    run.warn("cursor_lost", CURSOR_LOST);
  }

  function errorOf(code: string, message: string) {
    return {
      code,
      message: message.slice(0, MAX_MESSAGE_CHARS),
      atMs: clock(),
    };
  }

  /** @param nowMs when it ended: the plan goes by the clock of that moment, which may be set meanwhile */
  async function writeEnd(end: SourceEnd, plan: RunPlan, nowMs: number): Promise<void> {
    observe({ kind: "ended", channel, end });
    if (end.kind === "done") await recover();
    const isSlow = end.kind === "broken" || end.kind === "needsReauth";
    const nextAtMs = isSlow ? nowMs + SLOW_RETRY_MS : plan.nextAtMs;
    const { failures = end.kind === "failed" || isSlow ? taken.failures + 1 : 0 } = plan;
    const within = (ms: number | undefined): number =>
      ms === undefined ? 0 : Math.min(MAX_WAIT_MS, Math.max(0, ms - nowMs));
    const isRefusal = end.kind === "failed" && end.isRefusal === true;
    const ending: RunEnding = {
      failures,
      notBeforeMs: within("notBeforeMs" in end ? end.notBeforeMs : undefined),
      retryInMs: failures > 0 ? within(nextAtMs) : 0,
      progress: plan.progress,
      refusal: isRefusal ? LASTING : end.kind === "done" ? "none" : undefined,
    };
    const written = await positions.end(number, epoch, ending);
    // Another has taken it over: how this run ended says nothing of that one.
    if (written === "gone") return;
    const isLasting = written === "lasting";
    const found = isLasting ? "error" : FOUND[end.kind];
    const waitMs = Math.max(ending.notBeforeMs, within(nextAtMs), isLasting ? SLOW_RETRY_MS : 0);
    report.note({
      state: found ?? "waiting",
      nextAtMs: found !== "paused" && waitMs > 0 ? nowMs + waitMs : null,
      ...errorFactsOf(end),
    });
    if (found && (await setState({ number, version: channel.version }, found)))
      observe({ kind: "stopped", channel, state: found, end });
  }

  function errorFactsOf(end: SourceEnd): SourceFacts {
    switch (end.kind) {
      case "done":
        return {};
      case "failed":
      case "broken":
        return { lastError: errorOf(end.code, end.message) };
      case "finished":
      case "needsReauth":
        return { lastError: errorOf(end.kind, end.message) };
      default:
        return end satisfies never;
    }
  }

  return {
    run,
    failures: taken.failures,
    hasWritten: () => hasWritten,
    report(facts) {
      isLagTold ||= facts.lagMs !== undefined;
      report.note(facts);
    },
    async end(end, plan = {}) {
      const nowMs = clock();
      await writes.settled();
      try {
        if (end) await writeEnd(end, plan, nowMs);
        else report.note({ state: "waiting" });
      } finally {
        clearTimeout(wellTimer);
        await report.close();
      }
    },
  };
}

const verifiedOf = ({ headers, body, arrivedAtMs, deliveryId }: FetchedDelivery): VerifiedDelivery =>
  deliveryId === undefined
    ? { method: "GET", headers, query: NO_QUERY, body, arrivedAtMs }
    : { method: "GET", headers, query: NO_QUERY, body, arrivedAtMs, deliveryId };

const CURSOR_LOST =
  "Redis no longer knows where the source stood: it begins anew where `startAt` says, and what came before that is not fetched";

/** The state of a channel after a run has ended so. */
const FOUND: { readonly [K in SourceEnd["kind"]]?: "paused" | "error" | "needsReauth" } = {
  finished: "paused",
  broken: "error",
  needsReauth: "needsReauth",
};
