import type { RedisBus } from "../../src/bus/connection/redis.ts";
import { startRedisClock } from "../../src/bus/connection/redis-clock.ts";
import { createSlots } from "../../src/bus/limits/slots.ts";
import { createPublish } from "../../src/bus/publish/publish.ts";
import type { PublishPolicy } from "../../src/bus/publish/publish-batch.ts";
import { computeShard, createShardLeases } from "../../src/bus/sources/shard-leases.ts";
import { createSourcePositions } from "../../src/bus/sources/source-positions.ts";
import { createSourceStates } from "../../src/bus/sources/source-states.ts";
import type { SourceChannel } from "../../src/channels/pull/open-run.ts";
import { startPolls } from "../../src/channels/pull/polls/polls.ts";
import { createSourcePace } from "../../src/channels/pull/source-pace.ts";
import { createSourceRuns } from "../../src/channels/pull/source-runs.ts";
import { type Shards, startShards } from "../../src/channels/pull/streams/shards.ts";
import { StreamRunner } from "../../src/channels/pull/streams/stream-runner.ts";
import { createStreamRunners } from "../../src/channels/pull/streams/stream-runners.ts";
import type { SourceRun } from "../../src/channels/source.ts";
import type { SourceRow } from "../../src/data/channels/sources.ts";
import type { OutgoingEvent } from "../../src/event/event.ts";
import type { IngestResult } from "../../src/event/ingest.ts";
import type { SourcePosition } from "../../src/event/received.ts";
import { loadScript } from "../../src/lib/lua.ts";
import { endsWithin } from "../../src/lib/sleep.ts";
import { FairLimiter } from "../../src/limits/fairness.ts";
import { createLog } from "../../src/log.ts";
import { createMetrics } from "../../src/metrics.ts";
import { Link } from "./link.ts";
import type { SimulatedQueue } from "./simulated-queue.ts";
import type { Upstream } from "./upstream.ts";
import type { VirtualRedis } from "./virtual-redis.ts";
import { within } from "./virtual-time.ts";
import { Process, type World } from "./world.ts";

export interface SimulatedSource {
  readonly channel: SourceChannel;
  readonly topics: readonly string[];
  readonly way: "stream" | "poll";
}

export const POLL_INTERVAL_S = 5;
const TTL_MS = 9_000;
const WRITE_TIMEOUT_MS = 3_500;
const CALL_TIMEOUT_MS = 4_000;
const publishScript = loadScript(new URL("../../src/bus/publish/publish.lua", import.meta.url));
const DAY_MS = 86_400_000;
const OUTCOME = {
  received: 0,
  published: 0,
  duplicates: 0,
  ignored: 0,
  quarantined: 0,
  events: [],
  quarantine: [],
};
const metrics = createMetrics();
const log = createLog({ level: "silent" });

/** The part of a gateway that runs sources: the real modules, on a slow and unreliable simulated connection. */
export interface Worker {
  readonly process: Process;
  readonly links: readonly Link[];
  readonly shards: Shards;
  /** Restarts a source, like a configuration change by a user. */
  readonly restart: (source: SimulatedSource) => void;
  /** Shuts the worker down gracefully. */
  readonly leave: () => void;
  /** Kills the worker immediately, like SIGKILL. */
  readonly kill: () => void;
}

export function startWorker(
  world: World,
  server: VirtualRedis,
  options: {
    readonly name: string;
    readonly sources: readonly SimulatedSource[];
    readonly queue: SimulatedQueue;
    /** Sources that have started at least once, on any worker. */
    readonly started: Set<number>;
    readonly upstream: Upstream;
    /** Whether to write like in a Cluster, with a separate call per slot. */
    readonly isSlotted: boolean;
  },
): Worker {
  const { name, sources, queue, started, upstream, isSlotted } = options;
  const process = new Process(world, name);
  const general = new Link(process, server, { timeoutMs: CALL_TIMEOUT_MS, isRaw: false });
  const writing = new Link(process, server, { timeoutMs: WRITE_TIMEOUT_MS, isRaw: true });
  const redis = createBus(general, writing, isSlotted);
  let now = process.wallMs;
  const clock = (): number => now();
  const random = world.chance.next;
  const publish = createPublish({ redis, newQuarantineId: () => "qr_1" });
  const byNumber = new Map(sources.map((source) => [source.channel.identity.number, source]));
  const policy: PublishPolicy = {
    dedupeWindowMs: isSlotted ? DAY_MS : 0,
    conflict: "report",
    maxEntries: 1_000_000,
  };

  async function ingest(
    { identity }: SourceChannel,
    { body }: { readonly body: Buffer },
    { position, signal }: { readonly position: SourcePosition; readonly signal: AbortSignal },
  ): Promise<IngestResult> {
    const topics = byNumber.get(identity.number)?.topics ?? [];
    const numbers: readonly number[] = JSON.parse(body.toString());
    const events = numbers.map((n) =>
      createEvent(n, topics[n % topics.length] ?? "", { epoch: position.epoch, isRemembered: isSlotted }),
    );
    await publish({ channel: identity, events, policy, position }, { signal });
    return { kind: "accepted", outcome: OUTCOME };
  }

  const runs = createSourceRuns<SourceChannel>({
    clock,
    isPipelined: !isSlotted,
    positions: createSourcePositions({ redis }),
    gather: (channel, deliveries) =>
      deliveries.map((delivery) => ({
        count: 1,
        items: 1,
        write: async (options) => [await ingest(channel, delivery, options)],
      })),
    states: createSourceStates({ redis }),
    // Replaces the database, which never fails in the simulation.
    findSource: async (number) => {
      const source = byNumber.get(number);
      return source && { ...source, hasRunBefore: started.has(number) };
    },
    credentialsOf: () => {
      throw new Error("the simulation has no credentials");
    },
    move: async ({ identity }, { position, signal }) =>
      void (await publish({ channel: identity, events: [], policy, position }, { signal })),
    recordFirstRun: async (number) => void started.add(number),
    pace: createSourcePace({ deliveriesPerSecondOf: () => undefined }),
    setState: async () => false,
    observe: () => {},
  });
  const starts = new FairLimiter(64);
  const stream = {
    reconnect: () => ({ initialMs: 200, maxMs: 5_000, factor: 2, jitter: 0.5, resetAfterMs: 10_000 }),
    runConnection: (run: SourceRun) => upstream.stream(run, clock),
  };
  const runners = createStreamRunners(
    ({ number }) => new StreamRunner(number, { runs, stream, starts, clock, random, log, owner: name }),
  );
  const streams = sources.filter(({ way }) => way === "stream").map(({ channel }) => createRow(channel));
  const shards = within(process, () =>
    startShards({
      worker: name,
      log,
      leases: createShardLeases({ redis }),
      timing: { ttlMs: TTL_MS, tickEveryMs: TTL_MS / 3, maxTakenPerTick: 96, maxReleasedPerTick: 48 },
      async vacate(shards) {
        await endsWithin(1_500, runners.ended(shards));
      },
      onHeld(held) {
        const ours = streams.filter(({ number }) => held.has(computeShard(number)));
        runners.reconcile(new Map(ours.map((row) => [row.number, row])));
      },
    }),
  );
  const polled = {
    schedule: () => ({ everySeconds: POLL_INTERVAL_S, jitter: 0 }),
    origin: () => "https://api.example.com",
    poll: (run: SourceRun) => upstream.poll(run, clock),
    dryRun: () => Promise.reject(new Error("the simulation has no dry runs")),
  };
  const polls = within(process, () =>
    startPolls({
      runs,
      clock,
      log,
      random,
      owner: name,
      concurrency: 4,
      queue: queue.connect(process, general),
      slots: createSlots({ redis }),
      runtimes: new Map([["polling", { polled }]]),
      limits: { perOrigin: 10, perOrganization: 10 },
      metrics,
      timing: { deadlineMs: 20_000, reconcileEveryMs: 15_000 },
    }),
  );
  within(process, async () => {
    const redisClock = await startRedisClock({ redis, log, clock: process.wallMs });
    now = redisClock.now;
    polls.sync(sources.flatMap(({ way, channel }) => (way === "poll" ? [{ ...channel, config: {} }] : [])));
  });

  return {
    process,
    shards,
    links: [general, writing],
    restart: ({ channel, way }) =>
      within(process, () => {
        const { number } = channel.identity;
        if (way === "poll") polls.requestPoll(number);
        else runners.restart(number);
      }),
    leave: () =>
      within(process, () => {
        void polls[Symbol.asyncDispose]();
        void shards[Symbol.asyncDispose]();
      }),
    kill() {
      general.abandon();
      writing.abandon();
      process.isDead = true;
    },
  };
}

const createRow = ({ identity, version }: SourceChannel): SourceRow => ({
  ...identity,
  version,
  state: "active",
  connectionId: null,
  isWanted: true,
});

function createEvent(
  n: number,
  topic: string,
  { epoch, isRemembered }: { readonly epoch: number; readonly isRemembered: boolean },
): OutgoingEvent {
  const data = JSON.stringify({ n, epoch });
  return {
    id: String(n),
    type: "tick",
    topic,
    item: 0,
    bytes: 200,
    identity: isRemembered ? String(n).padStart(22, "_") : "",
    digest: "0".repeat(11),
    fields: [
      ...["specversion", "1.0", "id", String(n), "source", "/s", "type", "tick"],
      ...["time", "2026-01-01T00:00:00.000Z", "datacontenttype", "application/json", "data", data],
    ],
  };
}

function createBus(general: Link, writing: Link, isSlotted: boolean): RedisBus {
  const never = (): never => {
    throw new Error("the simulation does not support this call");
  };
  const connection = {
    name: "redis",
    facts: undefined,
    wait: undefined,
    problem: undefined,
    writeRejection: undefined,
    check: () => {},
    recordWriteResult: () => {},
    waitUntilOpen: async () => {},
    send: (command: string, args: (string | Buffer)[]) => writing.send(command, args),
    async [Symbol.asyncDispose]() {},
  };
  const writes: RedisBus["writes"] = {
    isSlotted,
    connectionFor: () => connection,
    redirect: async () => undefined,
    connections: () => [connection],
    async [Symbol.asyncDispose]() {},
  };
  return {
    isCluster: isSlotted,
    get endpoint() {
      return never();
    },
    state: never,
    publishScript,
    call: (command, args) => general.send(command, args),
    callBuffer: never,
    writes,
    largeWrites: writes,
    async [Symbol.asyncDispose]() {},
  };
}
