import { describe, expect, it } from "vitest";
import type { ChannelKind } from "../../src/channels/kind.ts";
import type { FetchedDelivery, SourceEnd, StreamRun } from "../../src/channels/source.ts";
import type { IngestResult } from "../../src/event/ingest.ts";
import { UnavailableError } from "../../src/lib/errors.ts";
import { createLog } from "../../src/log.ts";
import { createOutbound } from "../../src/net/create-outbound.ts";
import { readHere } from "../support/read-here.ts";
import { until } from "../support/until.ts";

/** A sender of events that are numbered from 1. */
export interface SourceUpstream extends AsyncDisposable {
  readonly config: Readonly<Record<string, unknown>>;
  /** Adds `count` events. */
  readonly add: (count: number) => void;
}

export interface SourceSamples {
  readonly kind: ChannelKind;
  readonly openUpstream: () => Promise<SourceUpstream>;
  /** The numbers of the events in a delivery. */
  readonly numbersIn: (delivery: FetchedDelivery) => readonly number[];
}

const ACCEPTED: IngestResult = {
  kind: "accepted",
  outcome: {
    received: 0,
    published: 0,
    duplicates: 0,
    ignored: 0,
    quarantined: 0,
    events: [],
    quarantine: [],
  },
};

/** Describes the guarantees of every kind that fetches. The gateway relies on them to lose no event. */
export function describeSource({ kind, openUpstream, numbersIn }: SourceSamples): void {
  async function open() {
    await using opening = new AsyncDisposableStack();
    const upstream = opening.use(await openUpstream());
    const outbound = opening.use(createOutbound({ allowNetworks: ["127.0.0.0/8"] }));
    const log = createLog({ level: "silent" });
    const runtime = opening.use(
      await kind.start({ outbound, clock: Date.now, log, readInWorker: readHere(kind) }),
    );
    const start = runtime.stream?.runConnection ?? runtime.polled?.poll;
    if (start === undefined) throw new Error(`${kind.kind} does not fetch`);
    const owned = opening.move();
    const config = kind.configSchema.parse(upstream.config);
    return {
      upstream,
      config,
      start: (cursor?: string, ingest?: () => Promise<void>) =>
        startRun(start, { kind: kind.kind, config, cursor, numbersIn, ...(ingest && { ingest }) }),
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
  }

  describe(`a source of the kind ${kind.kind}`, () => {
    it("passes every upstream event to ingest once and in order, and stores a cursor", async () => {
      await using source = await open();
      source.upstream.add(5);
      await using run = source.start();
      await until(() => run.numbers.length >= 5);
      expect(run.numbers).toEqual([1, 2, 3, 4, 5]);
      await until(() => run.stored !== undefined);
    });

    it("does not move its cursor before ingest has resolved", async () => {
      await using source = await open();
      source.upstream.add(3);
      const { promise, resolve } = Promise.withResolvers<void>();
      await using run = source.start(undefined, () => promise);
      await until(() => run.numbers.length > 0);
      expect([run.moves, run.stored]).toEqual([[], undefined]);
      resolve();
      await until(() => run.stored !== undefined && run.numbers.length === 3);
    });

    it("stops without moving its cursor when ingest throws, and delivers the same events again after a restart", async () => {
      await using source = await open();
      source.upstream.add(3);
      await using failing = source.start(undefined, () => Promise.reject(new UnavailableError("away")));
      expect(await failing.ended).toBeInstanceOf(UnavailableError);
      expect([failing.moves, failing.stored]).toEqual([[], undefined]);
      await using again = source.start(failing.stored);
      await until(() => again.numbers.length >= 3);
      expect(again.numbers).toEqual([1, 2, 3]);
    });

    it("continues at the stored cursor after a restart", async () => {
      await using source = await open();
      source.upstream.add(3);
      const first = source.start();
      await until(() => first.numbers.length === 3 && first.pending === 0);
      await first[Symbol.asyncDispose]();
      source.upstream.add(2);
      await using second = source.start(first.stored);
      await until(() => second.numbers.length >= 2);
      expect(second.numbers).toEqual([4, 5]);
    });

    it("stops when its signal aborts, even while a call of ingest is pending", async () => {
      await using source = await open();
      source.upstream.add(1);
      await using run = source.start(undefined, () => new Promise<never>(() => {}));
      await until(() => run.pending > 0);
      run.abort();
      await run.ended;
      expect(run.stored).toBeUndefined();
    });

    it("shows its cursor as JSON, and accepts that JSON as a cursor", async () => {
      await using source = await open();
      source.upstream.add(2);
      const run = source.start();
      await until(() => run.numbers.length === 2 && run.pending === 0 && run.stored !== undefined);
      await run[Symbol.asyncDispose]();
      const shown: unknown = JSON.parse(JSON.stringify(kind.cursor?.show(run.stored ?? "")));
      const parsed = kind.cursor?.parse(shown, source.config);
      expect(parsed?.ok && kind.cursor?.show(parsed.value)).toEqual(shown);
      const refused = kind.cursor?.parse({ unknownField: 1 }, source.config);
      expect(refused?.ok === false && refused.error[0]?.message).toEqual(expect.any(String));
    });
  });
}

interface StartedRun extends AsyncDisposable {
  readonly numbers: number[];
  readonly moves: string[];
  readonly stored: string | undefined;
  /** Number of ingest calls that have not settled. */
  readonly pending: number;
  /** The result of the run, or the error that it threw. */
  readonly ended: Promise<SourceEnd | Error>;
  readonly abort: () => void;
}

function startRun(
  start: (run: StreamRun) => Promise<SourceEnd>,
  options: {
    readonly kind: string;
    readonly config: unknown;
    readonly cursor: string | undefined;
    readonly numbersIn: SourceSamples["numbersIn"];
    readonly ingest?: () => Promise<void>;
  },
): StartedRun {
  const ending = new AbortController();
  const { signal } = ending;
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  aborted.catch(() => {});
  const state = { numbers: [] as number[], moves: [] as string[], pending: 0, stored: options.cursor };
  const run: StreamRun = {
    channel: {
      identity: { number: 1, uid: "in", kind: options.kind, appId: "app_1", organizationId: "org_1" },
      state: "active",
      limits: { maxBodyBytes: 1, maxDepth: 128 },
      kindConfig: options.config,
      acceptsContentType: () => true,
      methods: [],
      answer: "outcome",
    },
    config: options.config,
    credentials: undefined,
    cursor: options.cursor,
    startedAtMs: 0,
    async ingest(delivery, { cursor }) {
      state.numbers.push(...options.numbersIn(delivery));
      state.pending++;
      try {
        await Promise.race([options.ingest?.(), aborted]);
      } finally {
        state.pending--;
      }
      state.stored = cursor ?? state.stored;
      return ACCEPTED;
    },
    ingestAll: (deliveries, { cursorAfter, signal }) =>
      Promise.all(deliveries.map((delivery, n) => run.ingest(delivery, { cursor: cursorAfter(n), signal }))),
    async moveTo(cursor) {
      state.moves.push(cursor);
      state.stored = cursor;
    },
    opened() {},
    warn() {},
    signal,
  };
  const ended = start(run).catch((error: Error) => error);
  return Object.assign(state, {
    ended,
    abort: () => ending.abort(new Error("the test ended the run")),
    async [Symbol.asyncDispose]() {
      ending.abort(new Error("the test ended the run"));
      await ended;
    },
  });
}
