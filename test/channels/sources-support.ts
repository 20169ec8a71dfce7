import { z } from "zod";
import { createTopics } from "../../src/bus/topics.ts";
import type { ChannelKind } from "../../src/channels/kind.ts";
import { pullSettings } from "../../src/channels/pull-settings.ts";
import type { ReconnectPolicy, SourceEnd, SourceRun } from "../../src/channels/source.ts";
import { createCaptureSecret } from "../../src/data/capture-secret.ts";
import { startChangeFeed } from "../../src/data/changes.ts";
import { createLiveChannels } from "../../src/data/live-channels.ts";
import { commonSettings } from "../../src/event/channel.ts";
import { createEventPath } from "../../src/gateway/event-path.ts";
import { createSourceBus, type Sources, type SourcesDeps, startSources } from "../../src/gateway/sources.ts";
import { startSchemaCompiler } from "../../src/lib/json-schema/compiler.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics, type Metrics } from "../../src/metrics.ts";
import { openTestRedis } from "../bus/support.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { startTestSpine, type TestSpine } from "../support/spine.ts";
import { until } from "../support/until.ts";

const settings = z.strictObject({ ...commonSettings, ...pullSettings });

/** A server with a numbered feed for each channel, and what it sees of those who read it. */
export interface Upstream {
  /** Up to which number each feed has been written. */
  readonly written: Map<number, number>;
  /** Connections that are open now, by channel. */
  readonly open: Map<number, number>;
  /** Most connections that one channel ever had at a time. */
  mostOpen: number;
  /** Connections made so far, by channel. */
  readonly connects: Map<number, number>;
  /** How the next connections of a channel end, at once. */
  readonly ends: Map<number, SourceEnd>;
  readonly reconnect: { policy: ReconnectPolicy };
}

export function createUpstream(): Upstream {
  return {
    ...{ written: new Map(), open: new Map(), mostOpen: 0, connects: new Map(), ends: new Map() },
    reconnect: { policy: { initialMs: 20, maxMs: 100, factor: 2, jitter: 0.5, resetAfterMs: 50 } },
  };
}

/** A stream that counts: each event is its number, which is the cursor too. It sends ahead, up to eight at a time. */
export function countingKind(upstream: Upstream): ChannelKind {
  async function hold(run: SourceRun): Promise<SourceEnd> {
    const { number } = run.channel.identity;
    upstream.connects.set(number, (upstream.connects.get(number) ?? 0) + 1);
    const end = upstream.ends.get(number);
    if (end) return end;
    const open = (upstream.open.get(number) ?? 0) + 1;
    upstream.open.set(number, open);
    upstream.mostOpen = Math.max(upstream.mostOpen, open);
    try {
      run.opened();
      let at = Number(run.cursor ?? 0);
      while (!run.signal.aborted) {
        const till = Math.min(upstream.written.get(number) ?? 0, at + 8);
        const writes: Promise<unknown>[] = [];
        while (at < till)
          writes.push(run.ingest(deliveryOf(++at), { cursor: String(at), signal: run.signal }));
        await Promise.all(writes);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
      return { kind: "done" };
    } finally {
      upstream.open.set(number, (upstream.open.get(number) ?? 1) - 1);
    }
  }
  return {
    ...{ kind: "sse", settings, secretSettings: [], addressed: false, needsSetup: () => false },
    cursor: {
      show: Number,
      parse: (value) =>
        typeof value === "number"
          ? { ok: true, value: String(value) }
          : { ok: false, error: [{ path: "", message: "must be a number" }] },
    },
    start: async () => ({
      stream: { reconnect: () => upstream.reconnect.policy, hold },
      async [Symbol.asyncDispose]() {},
    }),
  };
}

export const deliveryOf = (n: number) => ({
  headers: { "content-type": "application/json" },
  body: Buffer.from(`{"n":${n}}`),
  arrivedAtMs: Date.now(),
});

/** A worker, as far as it runs sources. Disposal ends it in good order. */
export interface TestWorker extends AsyncDisposable {
  readonly sources: Sources;
  readonly metrics: Metrics;
  readonly stop: AbortController;
}

export interface SourceRig extends AsyncDisposable {
  readonly upstream: Upstream;
  readonly spine: TestSpine;
  /** Its Redis, of its own. */
  readonly server: RedisServer;
  readonly startWorker: (instead?: Partial<SourcesDeps> & { readonly url?: string }) => Promise<TestWorker>;
  /** Apps of one channel each, written for its number: events are never recognized as repeats. */
  readonly install: (count: number, config?: object) => Promise<readonly InstalledSource[]>;
  /** The numbers on the source's topic, in the order of its entries. */
  readonly onTopic: (source: InstalledSource) => Promise<readonly number[]>;
}

export interface InstalledSource {
  readonly number: number;
  readonly appId: string;
  readonly channelId: string;
  readonly topic: string;
}

export const TIMING = { ttlMs: 1_200, beatEveryMs: 60, mostTaken: 64, mostGiven: 16, lookGapMs: 20 } as const;

export async function startSourceRig(): Promise<SourceRig> {
  await using starting = new AsyncDisposableStack();
  const upstream = createUpstream();
  const kind = countingKind(upstream);
  const server = await startRedis();
  const spine = starting.use(await startTestSpine({ extraKinds: [kind], server }));
  const schemas = starting.use(startSchemaCompiler());
  const workers: TestWorker[] = [];
  starting.defer(async () => {
    await Promise.all(workers.map((worker) => worker[Symbol.asyncDispose]()));
  });
  const { db } = spine.api.database;
  const log = createLog({ level: "silent" });

  async function startWorker({
    url = spine.server.url,
    ...instead
  }: Parameters<SourceRig["startWorker"]>[0] = {}) {
    await using beginning = new AsyncDisposableStack();
    const redis = beginning.use(await openTestRedis(url));
    const channelKinds = new Map([[kind.kind, kind]]);
    const metrics = createMetrics();
    const stop = new AbortController();
    const shared = { redis, channelKinds, metrics, clock: Date.now, blindMs: () => 0 };
    const { keyring } = spine.api;
    const liveChannels = createLiveChannels({ db, keyring });
    const path = createEventPath({
      ...{ ...shared, keyring, liveChannels, schemas, onAppended: () => {}, presets: new Map() },
      hooksUrl: () => "https://hooks.example",
      fetchPinned: () => Promise.reject(new Error("this test fetches nothing")),
      captureSecret: createCaptureSecret({ db, keyring, nowMs: Date.now }),
    });
    const runtime = beginning.use(
      await kind.start({ clock: Date.now, log } as Parameters<ChannelKind["start"]>[0]),
    );
    const deps: SourcesDeps = {
      ...{ ...shared, db, path, log, bus: createSourceBus(redis), topics: createTopics({ redis }) },
      runtimes: new Map([[kind.kind, runtime]]),
      credentialsOf: () => {
        throw new Error("this test has no connections");
      },
      polls: { concurrency: 1, limits: { perOrigin: 1, perOrganization: 1 } },
      stopping: stop.signal,
      timing: TIMING,
      ...instead,
    };
    const sources = beginning.use(startSources(deps));
    beginning.use(
      await startChangeFeed({
        ...{ db, log, clock: Date.now, pollEveryMs: 50 },
        onChange: sources.noteChange,
        onReset: sources.noteReset,
      }),
    );
    const owned = beginning.move();
    const worker = { sources, metrics, stop, [Symbol.asyncDispose]: () => owned.disposeAsync() };
    workers.push(worker);
    return worker;
  }

  const owned = starting.move();
  return {
    ...{ upstream, spine, server, startWorker },
    install: (count, config = {}) =>
      Promise.all(
        Array.from({ length: count }, async () => {
          const app = await spine.install({
            ...{ uid: "in", kind: "sse", events: [{ type: "tick" }] },
            config: { run: "always", dedupe: { windowSeconds: 0 }, ...config },
          });
          const [channel] = app.channels;
          const { number } = await db
            .selectFrom("channels")
            .select("number")
            .where("id", "=", channel.id)
            .executeTakeFirstOrThrow();
          const topic = `events.${app.organizationId}.apps.app.event_received.${app.id}.in.tick`;
          return { number, appId: app.id, channelId: channel.id, topic };
        }),
      ),
    async onTopic({ topic }) {
      const entries = await spine.topics.listEntries(topic, { from: "-", to: "+", limit: 100_000 });
      return entries.map(({ fields }) => JSON.parse(fields.data ?? "").n);
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

export const upTo = (n: number): readonly number[] => Array.from({ length: n }, (_, i) => i + 1);

/** Waits until each source's topic has so many entries. */
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
