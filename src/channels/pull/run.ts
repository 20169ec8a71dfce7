import { StaleSourceError } from "../../bus/errors.ts";
import type { RunEnding } from "../../bus/sources/source-positions.ts";
import type { SourceFacts, SourceState } from "../../bus/sources/source-states.ts";
import type { StoppedState } from "../../data/channel-states.ts";
import type { IngestResult } from "../../event/ingest.ts";
import type { FetchedDelivery, SourceEnd, SourceRun } from "../source.ts";
import { createOrderedWrites } from "./ordered-writes.ts";
import { createSourceReport } from "./source-report.ts";
import type { BeginningRun, OpenRun, RunDeps, RunPlan, SourceChannel } from "./source-runs.ts";

/** What a small delivery costs on its way besides its bytes. */
const DELIVERY_BYTES = 512;
/** Nobody asks for a longer wait in earnest, and who does so by mistake must not stop a source for good. */
const MAX_WAIT_MS = 24 * 3_600_000;
const MAX_MESSAGE_CHARS = 500;
const FETCHED = { method: "GET", query: Object.freeze(Object.create(null)) } as const;

/** One run of a source that was taken over; all that it writes is fenced by its epoch and kept in order. */
export function startRun<C extends SourceChannel>(deps: RunDeps<C>, beginning: BeginningRun<C>): OpenRun {
  const { positions, states, ingest, move, stopChannel, underWay, clock, observe } = deps;
  const { channel, taken, owner, signal } = beginning;
  const { number } = channel.identity;
  const { epoch } = taken;
  const writes = createOrderedWrites({ version: taken.version, isPipelined: deps.isPipelined });
  const report = createSourceReport((facts) => states.write(number, epoch, facts, clock()));
  report.note({ state: "connecting", owner, nextAtMs: null });
  let isOpen = false;
  let hasWritten = false;
  /** Whoever runs it knows better what it lags behind. */
  let isLagTold = false;

  async function fenced<T>(write: Promise<T>): Promise<T> {
    try {
      return await write;
    } catch (error) {
      if (error instanceof StaleSourceError) observe({ kind: "refused", channel, stale: error.stale });
      throw error;
    }
  }

  async function publish(
    { headers, body, arrivedAtMs, deliveryId }: FetchedDelivery,
    version: number,
    options: { readonly cursor?: string; readonly signal: AbortSignal },
  ): Promise<IngestResult> {
    using _ = await underWay.acquire(body.length + DELIVERY_BYTES, { signal: options.signal });
    // Past its lease a run sends nothing more, whatever it has read.
    signal.throwIfAborted();
    const delivery = {
      ...FETCHED,
      headers,
      body,
      arrivedAtMs,
      ...(deliveryId !== undefined && { deliveryId }),
    };
    const position = positionOf(version, options.cursor);
    const result = await ingest(channel, delivery, { signal: options.signal, position });
    hasWritten = true;
    const nowMs = clock();
    report.note({
      lastEventAtMs: nowMs,
      ...(isLagTold ? {} : { lagMs: Math.max(0, nowMs - arrivedAtMs) }),
    });
    return result;
  }

  const positionOf = (version: number, cursor: string | undefined) =>
    cursor === undefined ? { epoch, version } : { epoch, version, value: cursor };

  const run: SourceRun = {
    channel,
    settings: channel.settings,
    credentials: channel.connectionId === null ? undefined : deps.credentialsOf(channel.connectionId),
    cursor: taken.value,
    startedAtMs: taken.startedAtMs,
    signal,
    ingest: (delivery, options) => fenced(writes.add((version) => publish(delivery, version, options))),
    moveTo: (cursor, options) =>
      fenced(
        writes.add(async (version) => {
          signal.throwIfAborted();
          await move(channel, { signal: options.signal, position: positionOf(version, cursor) });
        }),
      ),
    opened() {
      if (isOpen) return;
      isOpen = true;
      report.note({ state: "open" });
    },
    warn: (code, message) => report.note({ lastError: errorOf(code, message) }),
  };

  const errorOf = (code: string, message: string) => ({
    code,
    message: message.slice(0, MAX_MESSAGE_CHARS),
    atMs: clock(),
  });

  async function writeEnd(end: SourceEnd, plan: RunPlan): Promise<void> {
    observe({ kind: "ended", channel, end: end.kind });
    const nowMs = clock();
    const { nextAtMs, failures = end.kind === "failed" ? taken.failures + 1 : 0 } = plan;
    const within = (ms: number | undefined): number =>
      ms === undefined ? 0 : Math.min(MAX_WAIT_MS, Math.max(0, ms - nowMs));
    const ending: RunEnding = {
      failures,
      notBeforeMs: within("notBeforeMs" in end ? end.notBeforeMs : undefined),
      retryInMs: failures > 0 ? within(nextAtMs) : 0,
    };
    // Another has taken it over: how this run ended says nothing of that one.
    if (!(await positions.end(number, epoch, ending))) return;
    const stopped = STOPPED[end.kind];
    const waitMs = Math.max(ending.notBeforeMs, within(nextAtMs));
    report.note({
      state: stopped ?? "waiting",
      nextAtMs: stopped === undefined && waitMs > 0 ? nowMs + waitMs : null,
      ...errorFactsOf(end),
    });
    if (stopped) await stopChannel({ number, version: channel.version }, stopped);
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
      await writes.settled();
      try {
        if (end) await writeEnd(end, plan);
        else report.note({ state: "waiting" });
      } finally {
        await report.close();
      }
    },
  };
}

/** What only a person can mend, or ask for again. */
const STOPPED: { readonly [K in SourceEnd["kind"]]?: StoppedState & SourceState } = {
  finished: "paused",
  broken: "error",
  needsReauth: "needsReauth",
};
