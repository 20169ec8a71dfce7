import type { Redis } from "ioredis";
import { cursorKey } from "../../src/bus/keys.ts";
import type { SourceChannel } from "../../src/channels/pull/open-run.ts";
import { SimulatedQueue } from "./simulated-queue.ts";
import { Upstream } from "./upstream.ts";
import { type Breakage, type Executed, VirtualRedis } from "./virtual-redis.ts";
import { POLL_INTERVAL_S, type SimulatedSource, startWorker, type Worker } from "./worker.ts";
import { World } from "./world.ts";

export interface HistoryResult {
  readonly seed: number;
  readonly isSlotted: boolean;
  /** Violated guarantees; empty if the history passed. */
  readonly violations: readonly string[];
  readonly steps: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly events: number;
}

const FEED = 30;
const WORKERS = 3;
const FAULT_PERIOD_MS = 16_000;
/**
 * Maximum time to recover after the last fault. Longer than any remaining wait, because polls more than half an hour ahead are moved
 * forward. Shorter than a clock jump.
 */
const MAX_RECOVERY_MS = 45 * 60_000;

/** Runs several workers and a server, and injects random faults. Deterministic for a seed. */
export async function runHistory(
  seed: number,
  client: Redis,
  {
    breakage = (text) => text,
    recoveryMs = MAX_RECOVERY_MS,
  }: {
    readonly breakage?: Breakage;
    /** Pass a shorter time for histories that are known to recover sooner. */
    readonly recoveryMs?: number;
  } = {},
): Promise<HistoryResult> {
  await client.flushdb();
  const world = new World(seed);
  const { chance } = world;
  const isSlotted = chance.is(0.3);
  const sources = [1, 2, 3].map((number) => createSource(number, number === 3 ? "poll" : "stream"));
  const upstream = new Upstream(world, FEED);
  const violations: string[] = [];
  const faults: Record<string, number> = {};
  const checker = createChecker(client, sources, { world, isSlotted, violations });
  const server = new VirtualRedis(world, client, {
    breakage,
    onExecuted: (done) => checker.see(done, server.timeMs()),
  });
  const workers = new Set<Worker>();
  const queue = new SimulatedQueue(server);
  const started = new Set<number>();
  let born = 0;

  const start = (): void =>
    void workers.add(
      startWorker(world, server, { name: `w${++born}`, sources, queue, started, upstream, isSlotted }),
    );
  const living = (): readonly Worker[] => [...workers].filter(({ process }) => !process.isDead);

  const kinds: Readonly<Record<string, (worker: Worker) => void>> = {
    crash(worker) {
      worker.kill();
      world.in(chance.between(0, 8_000), undefined, start);
    },
    leave(worker) {
      worker.leave();
      workers.delete(worker);
      world.in(chance.between(0, 8_000), undefined, start);
    },
    // A second pause never shortens the first.
    pause({ process }) {
      process.pausedUntilMs = Math.max(process.pausedUntilMs, world.nowMs + chance.between(10, 25_000));
    },
    cut: ({ links }) => chance.pick(links).cut(chance.between(0, 15_000)),
    stall() {
      const { process } = server;
      process.pausedUntilMs = Math.max(process.pausedUntilMs, world.nowMs + chance.between(10, 12_000));
    },
    workerClock({ process }) {
      process.wallSkewMs = chance.between(-HOURS_MS, HOURS_MS);
    },
    serverClock() {
      // In a Cluster the clock never moves back: dedupe would ignore ids in future slices, and a Cluster depends on dedupe.
      server.skewMs += chance.between(isSlotted ? 0 : -HOURS_MS, HOURS_MS);
      checker.clockJumped();
    },
    reject() {
      server.rejections = 1 + Math.floor(chance.between(0, 4));
    },
    restart: ({ restart }) => restart(chance.pick(sources)),
  };

  for (let n = 0; n < WORKERS; n++) world.in(chance.between(0, 500), undefined, start);
  const dispatch = (): void => {
    queue.dispatchDueJobs();
    world.in(200, undefined, dispatch);
  };
  dispatch();

  const startedMs = world.nowMs;
  const faultsEndMs = startedMs + FAULT_PERIOD_MS;
  const share = chance.between(0.005, 0.05);
  while (world.nowMs < faultsEndMs && violations.length === 0) {
    await world.step();
    const victims = living();
    checker.overlaps(victims);
    if (victims.length === 0 || !chance.is(share)) continue;
    const kind = chance.pick(Object.keys(kinds));
    faults[kind] = (faults[kind] ?? 0) + 1;
    kinds[kind]?.(chance.pick(victims));
  }

  upstream.failsRandomly = false;
  server.rejections = 0;
  for (const { process } of living()) process.pausedUntilMs = 0;
  while (violations.length === 0 && !(await isComplete(client, sources))) {
    if (world.nowMs > faultsEndMs + recoveryMs)
      violations.push("events are missing long after the last fault");
    for (let n = 0; n < 50; n++) await world.step();
  }
  for (const worker of living()) worker.leave();
  const endsMs = world.nowMs + 30_000;
  while (violations.length === 0 && world.nowMs < endsMs) await world.step();
  await checker.finish();
  return { seed, isSlotted, violations, steps: world.steps, faults, events: FEED * sources.length };
}

const HOURS_MS = 2 * 3_600_000;

function createSource(number: number, way: SimulatedSource["way"]): SimulatedSource {
  const identity = {
    number,
    uid: `s${number}`,
    kind: way === "poll" ? "polling" : "sse",
    appId: "app",
    organizationId: "org",
  };
  const channel: SourceChannel = {
    identity,
    version: 1,
    connectionId: null,
    state: "active",
    kindConfig: {},
    methods: [],
    answer: "outcome",
    limits: { maxBodyBytes: 1e6, maxDepth: 128 },
    acceptsContentType: () => true,
  };
  return { channel, way, topics: [`t.${number}.even`, `t.${number}.odd`] };
}

const entriesOf = async (client: Redis, topic: string): Promise<readonly { n: number; epoch: number }[]> =>
  (await client.xrange(topic, "-", "+")).map(([, fields]) => JSON.parse(fields.at(-1) ?? "null"));

async function isComplete(client: Redis, sources: readonly SimulatedSource[]): Promise<boolean> {
  const pipeline = client.pipeline();
  for (const { channel } of sources) pipeline.hget(cursorKey(channel.identity.number), "c");
  return ((await pipeline.exec()) ?? []).every(([, cursor]) => Number(cursor) === FEED);
}

/** Checks the executed commands in order, and the stored entries at the end. */
function createChecker(
  client: Redis,
  sources: readonly SimulatedSource[],
  options: { readonly world: World; readonly isSlotted: boolean; readonly violations: string[] },
) {
  const { world, isSlotted, violations } = options;
  const epochs = new Map<string, number>();
  /** Length of each topic when an epoch was stamped on it. */
  const fences: { readonly topic: string; readonly epoch: number; readonly length: number }[] = [];
  const polledAtMs = new Map<string, number>();
  let isClockSound = true;

  async function fence(topics: readonly string[], epoch: number): Promise<void> {
    for (const topic of topics) fences.push({ topic, epoch, length: await client.xlen(topic) });
  }

  return {
    async see({ name, keys, args, reply }: Executed, serverMs: number): Promise<void> {
      if (name === "stamp" && Number(reply) <= Number(args[1])) await fence(keys, Number(args[1]));
      if (name !== "takeOver" || !Array.isArray(reply) || reply[0] !== "acquired") return;
      const [source = ""] = args;
      const epoch = Number(reply[1]);
      if (epoch <= (epochs.get(source) ?? 0)) violations.push(`source ${source}: epoch ${epoch} is not new`);
      epochs.set(source, epoch);
      if (!isSlotted) await fence(keys.slice(1), epoch);
      // In a Cluster, a retried take-over passes 0 as the minimum interval, because its run has already started.
      if (args[3] === "0") return;
      const before = polledAtMs.get(source);
      polledAtMs.set(source, serverMs);
      const gapMs = serverMs - (before ?? Number.NEGATIVE_INFINITY);
      if (gapMs < POLL_INTERVAL_S * 1_000)
        violations.push(`source ${source} is polled again after ${gapMs} ms`);
    },
    /** Disables the checks of leases and poll intervals, which depend on the clock of the server. */
    clockJumped(): void {
      polledAtMs.clear();
      isClockSound = false;
    },
    /** Checks that no two workers run the same shard at the same time, unless a clock has jumped. */
    overlaps(workers: readonly Worker[]): void {
      const owners = new Map<number, string>();
      for (const { process, shards } of isClockSound ? workers : []) {
        if (process.pausedUntilMs >= world.nowMs) continue;
        for (const shard of shards.held()) {
          const other = owners.get(shard);
          if (other) violations.push(`shard ${shard} is run by ${other} and by ${process.name}`);
          owners.set(shard, process.name);
        }
      }
    },
    async finish(): Promise<void> {
      for (const { channel, topics } of sources) {
        const { number } = channel.identity;
        const byTopic = await Promise.all(topics.map((topic) => entriesOf(client, topic)));
        byTopic.forEach((entries, place) => {
          const found = entries.map(({ n }) => n);
          const wanted = Array.from({ length: FEED }, (_, i) => i + 1).filter(
            (n) => n % topics.length === place,
          );
          if (
            (found.join() !== wanted.join() && violations.length === 0) ||
            new Set(found).size !== found.length
          )
            violations.push(`source ${number}: ${topics[place]} holds ${found.join()}`);
          for (const { topic, epoch, length } of fences) {
            if (topic !== topics[place]) continue;
            const late = entries.slice(length).find((entry) => entry.epoch < epoch);
            if (late)
              violations.push(
                `source ${number}: ${late.n} was written under epoch ${late.epoch} after ${epoch} was taken`,
              );
          }
        });
      }
    },
  };
}
