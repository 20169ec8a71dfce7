import type { Redis } from "ioredis";
import { cursorKey } from "../../src/bus/keys.ts";
import type { SourceChannel } from "../../src/channels/pull/open-run.ts";
import { SimulatedQueue } from "./simulated-queue.ts";
import { Upstream } from "./upstream.ts";
import { type Breakage, type Executed, VirtualRedis } from "./virtual-redis.ts";
import { POLL_INTERVAL_S, type SimulatedSource, startWorker, type Worker } from "./worker.ts";
import { World } from "./world.ts";

/** What a history has shown. */
export interface Told {
  readonly seed: number;
  readonly isSlotted: boolean;
  /** Promises that were broken; empty where all was well. */
  readonly violations: readonly string[];
  readonly steps: number;
  readonly faults: Readonly<Record<string, number>>;
  readonly events: number;
}

const FEED = 30;
const WORKERS = 3;
/** For so long something goes wrong now and then. */
const TROUBLE_MS = 16_000;
/** Longer than any wait that is left then, a poll that is moved up where it stands more than half an hour ahead; shorter than a clock's jump. */
const LONGEST_HEALING_MS = 45 * 60_000;

/** One history: some workers and a server, with something that goes wrong at any step. The same seed tells the same. */
export async function runHistory(
  seed: number,
  client: Redis,
  {
    breakage = (text) => text,
    healingMs = LONGEST_HEALING_MS,
  }: {
    readonly breakage?: Breakage;
    /** Less is enough for a history of which that is known. */
    readonly healingMs?: number;
  } = {},
): Promise<Told> {
  await client.flushdb();
  const world = new World(seed);
  const { chance } = world;
  const isSlotted = chance.is(0.3);
  const sources = [1, 2, 3].map((number) => sourceOf(number, number === 3 ? "poll" : "stream"));
  const upstream = new Upstream(world, FEED);
  const violations: string[] = [];
  const faults: Record<string, number> = {};
  const watch = createWatch(client, sources, { world, isSlotted, violations });
  const server = new VirtualRedis(world, client, {
    breakage,
    onExecuted: (done) => watch.see(done, server.timeMs()),
  });
  const workers = new Set<Worker>();
  const queue = new SimulatedQueue(server);
  const begun = new Set<number>();
  let born = 0;

  const start = (): void =>
    void workers.add(
      startWorker(world, server, { name: `w${++born}`, sources, queue, begun, upstream, isSlotted }),
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
    // One that is paused already wakes no sooner: what it has to do then waits for the end of the longer pause.
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
      // Ids that are remembered in a slice of time that has not come again are not looked for, and a Cluster rests on them.
      server.skewMs += chance.between(isSlotted ? 0 : -HOURS_MS, HOURS_MS);
      watch.clockJumped();
    },
    refuse() {
      server.refusals = 1 + Math.floor(chance.between(0, 4));
    },
    restart: ({ restart }) => restart(chance.pick(sources)),
  };

  for (let n = 0; n < WORKERS; n++) world.in(chance.between(0, 500), undefined, start);
  const handOut = (): void => {
    queue.handOut();
    world.in(200, undefined, handOut);
  };
  handOut();

  const beganMs = world.nowMs;
  const troubleEndsMs = beganMs + TROUBLE_MS;
  const share = chance.between(0.005, 0.05);
  while (world.nowMs < troubleEndsMs && violations.length === 0) {
    await world.step();
    const victims = living();
    watch.overlaps(victims);
    if (victims.length === 0 || !chance.is(share)) continue;
    const kind = chance.pick(Object.keys(kinds));
    faults[kind] = (faults[kind] ?? 0) + 1;
    kinds[kind]?.(chance.pick(victims));
  }

  upstream.isMoody = false;
  server.refusals = 0;
  for (const { process } of living()) process.pausedUntilMs = 0;
  while (violations.length === 0 && !(await isWhole(client, sources))) {
    if (world.nowMs > troubleEndsMs + healingMs)
      violations.push("events are missing long after all was well again");
    for (let n = 0; n < 50; n++) await world.step();
  }
  for (const worker of living()) worker.leave();
  const endsMs = world.nowMs + 30_000;
  while (violations.length === 0 && world.nowMs < endsMs) await world.step();
  await watch.finish();
  return { seed, isSlotted, violations, steps: world.steps, faults, events: FEED * sources.length };
}

const HOURS_MS = 2 * 3_600_000;

function sourceOf(number: number, way: SimulatedSource["way"]): SimulatedSource {
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
    settings: {},
    methods: [],
    answer: "outcome",
    limits: { maxBodyBytes: 1e6, maxDepth: 128 },
    acceptsContentType: () => true,
  };
  return { channel, way, topics: [`t.${number}.even`, `t.${number}.odd`] };
}

const entriesOf = async (client: Redis, topic: string): Promise<readonly { n: number; epoch: number }[]> =>
  (await client.xrange(topic, "-", "+")).map(([, fields]) => JSON.parse(fields.at(-1) ?? "null"));

async function isWhole(client: Redis, sources: readonly SimulatedSource[]): Promise<boolean> {
  const asking = client.pipeline();
  for (const { channel } of sources) asking.hget(cursorKey(channel.identity.number), "c");
  return ((await asking.exec()) ?? []).every(([, cursor]) => Number(cursor) === FEED);
}

/** Looks at what the server has done, in its order, and at what stands in the end. */
function createWatch(
  client: Redis,
  sources: readonly SimulatedSource[],
  options: { readonly world: World; readonly isSlotted: boolean; readonly violations: string[] },
) {
  const { world, isSlotted, violations } = options;
  const epochs = new Map<string, number>();
  /** How long each topic was when an epoch was in force on it. */
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
      // One that has to stamp again, in a Cluster, asks for no distance: it has begun already.
      if (args[3] === "0") return;
      const before = polledAtMs.get(source);
      polledAtMs.set(source, serverMs);
      const gapMs = serverMs - (before ?? Number.NEGATIVE_INFINITY);
      if (gapMs < POLL_INTERVAL_S * 1_000)
        violations.push(`source ${source} is polled again after ${gapMs} ms`);
    },
    /** Leases go by that clock, and so does the distance of polls. */
    clockJumped(): void {
      polledAtMs.clear();
      isClockSound = false;
    },
    /** While nobody's clock jumps, no two workers run the sources of one shard: not even for a moment. */
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
                `source ${number}: ${late.n} came under epoch ${late.epoch} after ${epoch} was taken`,
              );
          }
        });
      }
    },
  };
}
