import { z } from "zod";
import type { ChannelKind } from "../../../src/channels/kind.ts";
import { pullFields } from "../../../src/channels/pull/pull-fields.ts";
import type { ReconnectPolicy, SourceEnd, SourceRun } from "../../../src/channels/source.ts";
import { sse } from "../../../src/channels/sse/sse.ts";
import { startChangeFeed } from "../../../src/data/changes.ts";
import { createCaptureSecret } from "../../../src/data/channels/capture-secret.ts";
import { createStoredChannels } from "../../../src/data/channels/stored-channels.ts";
import { commonFields } from "../../../src/event/channel.ts";
import { createEventPath } from "../../../src/gateway/event-path.ts";
import {
  createSourceBus,
  type Sources,
  type SourcesDeps,
  startSources,
} from "../../../src/gateway/sources.ts";
import { createLog } from "../../../src/log.ts";
import { createMetrics, type Metrics } from "../../../src/metrics.ts";
import { openTestRedis } from "../../bus/support.ts";
import { listEntries } from "../../support/entries.ts";
import { testLimitsOf } from "../../support/limits.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { sharedSchemas } from "../../support/schemas.ts";
import { startTestSpine, type TestSpine } from "../../support/spine.ts";
import { until } from "../../support/until.ts";

const configSchema = z.strictObject({ ...commonFields, ...pullFields });

/** A server with a numbered feed per channel. Records its readers. */
export interface Upstream {
  /** Extends the channel's feed up to this number. */
  readonly write: (channel: number, upTo: number) => void;
  /** The last number of each feed. */
  readonly written: ReadonlyMap<number, number>;
  /** Resolves at the next write. */
  readonly news: () => Promise<void>;
  /** Number of open connections per channel. */
  readonly open: Map<number, number>;
  /** Highest number of simultaneous connections of any channel. */
  mostOpen: number;
  /** Total number of connections per channel. */
  readonly connects: Map<number, number>;
  /** The ends to use for a channel's next connections, which end at once. */
  readonly ends: Map<number, SourceEnd>;
  readonly reconnect: { policy: ReconnectPolicy };
}

export function createUpstream(): Upstream {
  const written = new Map<number, number>();
  let news = Promise.withResolvers<void>();
  return {
    written,
    open: new Map(),
    mostOpen: 0,
    connects: new Map(),
    ends: new Map(),
    write(channel, upTo) {
      written.set(channel, upTo);
      news.resolve();
      news = Promise.withResolvers();
    },
    news: () => news.promise,
    reconnect: { policy: { initialMs: 20, maxMs: 100, factor: 2, jitter: 0.5, resetAfterMs: 50 } },
  };
}

/** A channel kind for feeds of numbers. Each event is a number, which is also the cursor. Up to eight events are in flight. */
export function countingKind(upstream: Upstream): ChannelKind {
  async function runConnection(run: SourceRun): Promise<SourceEnd> {
    const { number } = run.channel.identity;
    upstream.connects.set(number, (upstream.connects.get(number) ?? 0) + 1);
    const end = upstream.ends.get(number);
    if (end) return end;
    const open = (upstream.open.get(number) ?? 0) + 1;
    upstream.open.set(number, open);
    upstream.mostOpen = Math.max(upstream.mostOpen, open);
    try {
      run.opened();
      const aborted = new Promise((resolve) => run.signal.addEventListener("abort", resolve, { once: true }));
      let at = Number(run.cursor ?? 0);
      while (!run.signal.aborted) {
        const till = Math.min(upstream.written.get(number) ?? 0, at + 8);
        if (at >= till) await Promise.race([upstream.news(), aborted]);
        const writes: Promise<unknown>[] = [];
        while (at < till)
          writes.push(run.ingest(deliveryOf(++at), { cursor: String(at), signal: run.signal }));
        await Promise.all(writes);
      }
      return { kind: "done" };
    } finally {
      upstream.open.set(number, (upstream.open.get(number) ?? 1) - 1);
    }
  }
  return {
    kind: "sse",
    configSchema,
    secretFields: [],
    addressed: false,
    needsSetup: () => false,
    profile: sse.profile,
    cursor: {
      show: Number,
      parse: (value) =>
        typeof value === "number"
          ? { ok: true, value: String(value) }
          : { ok: false, error: [{ path: "", message: "must be a number" }] },
    },
    start: async () => ({
      stream: { reconnect: () => upstream.reconnect.policy, runConnection },
      async [Symbol.asyncDispose]() {},
    }),
  };
}

export const deliveryOf = (n: number) => ({
  headers: { "content-type": "application/json" },
  body: Buffer.from(`{"n":${n}}`),
  arrivedAtMs: Date.now(),
});

/** The source-running part of a worker. Disposal shuts it down gracefully. */
export interface TestWorker extends AsyncDisposable {
  readonly sources: Sources;
  readonly metrics: Metrics;
  readonly stop: AbortController;
  /** Reads the change feed. Tests call this because the feed's timer never fires. */
  readonly readChanges: () => Promise<void>;
}

export interface SourceRig extends AsyncDisposable {
  readonly upstream: Upstream;
  readonly spine: TestSpine;
  /** A Redis used only by this test file. */
  readonly server: RedisServer;
  readonly startWorker: (overrides?: Partial<SourcesDeps> & { readonly url?: string }) => Promise<TestWorker>;
  /** Installs an app with this many channels. Their events are never deduplicated. */
  readonly install: (count: number, config?: object) => Promise<readonly InstalledSource[]>;
  /** Returns the numbers on the source's topic, in entry order. */
  readonly onTopic: (source: InstalledSource) => Promise<readonly number[]>;
}

export interface InstalledSource {
  readonly number: number;
  readonly appId: string;
  readonly channelId: string;
  readonly uid: string;
  readonly topic: string;
}

/** Longer than any test runs, so a timer of this length never fires in a test. */
const NEVER_MS = 3_600_000;
/** Leases are long enough for a slow worker, and only the change feed triggers a check. */
const TIMING = {
  ttlMs: NEVER_MS,
  checkEveryMs: NEVER_MS,
  tickEveryMs: 60,
  maxTakenPerTick: 64,
  maxReleasedPerTick: 16,
  minCheckGapMs: 20,
} as const;

export async function startSourceRig(): Promise<SourceRig> {
  await using starting = new AsyncDisposableStack();
  const upstream = createUpstream();
  const kind = countingKind(upstream);
  const server = await startRedis();
  const spine = starting.use(await startTestSpine({ extraKinds: [kind], server }));
  const schemas = sharedSchemas();
  const workers: TestWorker[] = [];
  starting.defer(async () => {
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  });
  const { db } = spine.api.database;
  const log = createLog({ level: "silent" });

  async function startWorker({
    url = spine.server.url,
    timing,
    ...overrides
  }: Parameters<SourceRig["startWorker"]>[0] = {}) {
    await using beginning = new AsyncDisposableStack();
    const redis = beginning.use(await openTestRedis(url));
    const channelKinds = new Map([[kind.kind, kind]]);
    const metrics = createMetrics();
    const stop = new AbortController();
    const changes = beginning.use(await startChangeFeed({ db, log, pollEveryMs: NEVER_MS }));
    const redisClock = { now: Date.now, aheadMs: () => 0 };
    const shared = { redis, channelKinds, metrics, clock: Date.now, redisClock, changes };
    const { keyring } = spine.api;
    const storedChannels = createStoredChannels({ db, keyring });
    const path = beginning.use(
      createEventPath({
        isOverLimit: () => false,
        baseUrl: "https://inlet.example/v1",
        limitsOf: testLimitsOf,
        ...shared,
        keyring,
        storedChannels,
        schemas,
        log,
        onAppended: () => {},
        presets: new Map(),
        hooksUrl: "https://hooks.example",
        fetchPinned: () => Promise.reject(new Error("this test makes no requests")),
        captureSecret: createCaptureSecret({ db, keyring, nowMs: Date.now }),
        confirmRegistration: async () => {},
        reactToSignals: async () => {},
      }),
    );
    const runtime = beginning.use(
      await kind.start({ clock: Date.now, log } as Parameters<ChannelKind["start"]>[0]),
    );
    const deps: SourcesDeps = {
      ...shared,
      db,
      path,
      log,
      bus: createSourceBus(redis),
      runtimes: new Map([[kind.kind, runtime]]),
      limitsOf: testLimitsOf,
      credentialsOf: () => {
        throw new Error("this test has no connections");
      },
      config: {
        pollConcurrency: 1,
        pollsPerOrigin: 1,
        pollsPerOrganization: 1,
      },
      stopping: stop.signal,
      timing: { ...TIMING, ...timing },
      ...overrides,
    };
    const sources = beginning.use(startSources(deps));
    const owned = beginning.move();
    const worker: TestWorker = {
      sources,
      metrics,
      stop,
      readChanges: changes.readNow,
      [Symbol.asyncDispose]: () => owned.disposeAsync(),
    };
    workers.push(worker);
    return worker;
  }

  const owned = starting.move();
  return {
    upstream,
    spine,
    server,
    startWorker,
    async install(count, config = {}) {
      const channel = {
        kind: "sse",
        events: [{ type: "tick" }],
        config: { run: "always", dedupe: { windowSeconds: 0 }, ...config },
      };
      const app = await spine.install(
        ...Array.from({ length: count }, (_, i) => ({ ...channel, uid: `in${i}` })),
      );
      const channels = await db
        .selectFrom("channels")
        .select(["number", "uid"])
        .where("appId", "=", app.id)
        .execute();
      return channels.map(({ number, uid }) => {
        const topic = `events.${app.organizationId}.apps.app.event_received.${app.id}.${uid}.tick`;
        const { id: channelId } = app.channels.find((one: { readonly uid: string }) => one.uid === uid);
        return { number, appId: app.id, channelId, uid, topic };
      });
    },
    async onTopic({ topic }) {
      const entries = await listEntries(spine.redis, topic);
      return entries.map(({ fields }) => JSON.parse(fields.data ?? "").n);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export const upTo = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i + 1);

/** Waits until each source's topic has this many entries. */
export async function untilWritten(
  rig: SourceRig,
  sources: readonly InstalledSource[],
  n: number,
): Promise<void> {
  await until(
    async () => {
      const lengths = await Promise.all(sources.map(({ topic }) => rig.spine.server.client.xlen(topic)));
      return lengths.every((length) => length >= n);
    },
    { everyMs: 20 },
  );
}
