/**
 * Measures event streams against the baseline (`sse-baseline.ts`), in one run on one Redis with `appendfsync always`.
 *
 * - The cost of an event from the socket to the topic, as CPU time of the receiver and of Redis separately, in alternating rounds.
 * - The memory of the gateway while Redis is slow and a stream never pauses.
 * - Open, silent streams: the time until all are open, and the memory of each.
 *
 * Fails if a goal is missed.
 *
 * usage: npm run bench:sse [-- --rounds 8 --streams 1000]; `--rounds 0` measures only silent streams
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { installApp } from "../support/channels.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";
import { cpuSecondsOf, lowerQuartile, median, microsEach, rssOf, spreadOf } from "./cpu.ts";
import { readFlags } from "./flags.ts";
import { startBenchRedis } from "./redis.ts";
import { createGoals } from "./rounds.ts";

const { rounds: ROUNDS, streams: STREAMS } = readFlags({ rounds: 8, streams: 1_000 });
/** Size of an event in bytes, events per round, and minimum ratio of the baseline's CPU time to Inlet's. */
const SIZES = [
  { bytes: 300, events: 40_000, goal: 0.8 },
  { bytes: 3_000, events: 30_000, goal: 1.2 },
] as const;
/** Redis repeatedly pauses for `stoppedMs` and then works for `runningMs`. */
const SLOW = { stoppedMs: 450, runningMs: 50, times: 40, maxAddedMiB: 48 } as const;
const OPEN_GOAL_SECONDS = 3;
/** Number of streams opened first, to measure further streams in addition to them. */
const FIRST_STREAMS = 1_000;
const SMALL_YOUNG_GENERATION = "--max-semi-space-size=16";
const MEMORY_GOAL = { streams: 5_000, bytes: 45_000 } as const;
/** Maximum number of channels in one blueprint. */
const CHANNELS_AT_ONCE = 100;
const MIB = 1024 * 1024;
const LONG_MS = 300_000;

interface Sender extends Disposable {
  readonly origin: string;
  readonly open: () => number;
  readonly send: (to: string, count: number) => void;
}

const here = (name: string): string => join(import.meta.dirname, name);
await using server = await startBenchRedis();
const { dir, socket } = server;
let gateways = 0;
const goals = createGoals();
const redis = new Redis({ path: socket });
// The client reports errors until the server listens, and then connects.
redis.on("error", () => {});
try {
  if (ROUNDS > 0) {
    for (const size of SIZES) await measureEvents(size);
    await measureSlowRedis();
  }
  await measureSilent(STREAMS);
} finally {
  redis.disconnect();
  goals.tell();
}

async function measureEvents({ bytes, events, goal }: (typeof SIZES)[number]): Promise<void> {
  await using gateway = await startGateway();
  using sender = await startSender(bytes);
  const topic = await installStreams(gateway, [`${sender.origin}/flood/inlet`]);
  const baseline = startBaseline(`${sender.origin}/flood/baseline`, 1);
  await until(() => sender.open() === 2, { ceilingMs: LONG_MS });
  const inlets: Figures[] = [];
  const baselines: Figures[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const ofInlet = await figuresOf(gateway.pid, topic, events, () => sender.send("inlet", events));
    const ofBaseline = await figuresOf(baseline.pid ?? 0, "baseline", events, () =>
      sender.send("baseline", events),
    );
    // The first round warms up both receivers.
    if (round > 0) inlets.push(ofInlet);
    if (round > 0) baselines.push(ofBaseline);
  }
  baseline.kill();
  print(`\n${bytes} B an event, one stream, ${ROUNDS} rounds of ${events} events, p25 (least–most)`);
  printFigures("baseline (eventsource + XADD)", baselines);
  printFigures("inlet", inlets);
  const cpu = (all: readonly Figures[]): number => lowerQuartile(all.map(({ micros }) => micros));
  goals.check(`CPU time of an event of ${bytes} B, baseline : inlet`, cpu(baselines) / cpu(inlets), goal);
}

interface Figures {
  readonly micros: number;
  readonly redisMicros: number;
  readonly perSecond: number;
}

async function figuresOf(pid: number, topic: string, events: number, send: () => void): Promise<Figures> {
  const target = (await addedTo(topic)) + events;
  const startedAt = performance.now();
  const [micros = 0, redisMicros = 0] = await microsEach([pid, server.process.pid ?? 0], events, async () => {
    send();
    await until(async () => (await addedTo(topic)) >= target, { ceilingMs: LONG_MS, everyMs: 10 });
  });
  return { micros, redisMicros, perSecond: (events * 1000) / (performance.now() - startedAt) };
}

function printFigures(name: string, rounds: readonly Figures[]): void {
  const perSecond = median(rounds.map((round) => round.perSecond)).toFixed(0);
  const [own, ofRedis] = (["micros", "redisMicros"] as const).map((key) =>
    spreadOf(rounds.map((round) => round[key])),
  );
  print(`  ${name.padEnd(27)} CPU ${own} µs  Redis ${ofRedis} µs  ${perSecond} events/s`);
}

/** Returns the number of entries ever added to a stream. */
async function addedTo(topic: string): Promise<number> {
  const info = (await redis.xinfo("STREAM", topic).catch(() => [])) as unknown[];
  return Number(info[info.indexOf("entries-added") + 1] ?? 0);
}

/** Measures memory while Redis is paused most of the time and the stream sends more than Redis can store. */
async function measureSlowRedis(): Promise<void> {
  await using gateway = await startGateway();
  using sender = await startSender(300);
  const topic = await installStreams(gateway, [`${sender.origin}/flood/inlet`]);
  await until(() => sender.open() === 1, { ceilingMs: LONG_MS });
  await figuresOf(gateway.pid, topic, 100_000, () => sender.send("inlet", 100_000));
  const before = await rssOf(gateway.pid);
  let peak = before;
  sender.send("inlet", 1_000_000);
  for (let times = 0; times < SLOW.times; times++) {
    server.process.kill("SIGSTOP");
    await delay(SLOW.stoppedMs);
    peak = Math.max(peak, await rssOf(gateway.pid));
    server.process.kill("SIGCONT");
    await delay(SLOW.runningMs);
  }
  const addedMiB = (peak - before) / MIB;
  print(
    `\nRedis is paused for ${SLOW.stoppedMs} of ${SLOW.stoppedMs + SLOW.runningMs} ms, ${SLOW.times} times`,
  );
  print(
    `  inlet                       ${(before / MIB).toFixed(0)} MiB before, ${(peak / MIB).toFixed(0)} MiB at most`,
  );
  goals.check("additional MiB while Redis is slow", addedMiB, SLOW.maxAddedMiB, "most");
}

/**
 * Measures open, silent streams on a new gateway, because a used one has free memory.
 *
 * With many streams, measures only those after the first thousand, so that the memory for compiled code and for the installation does
 * not count. V8 then gets a small young generation. Otherwise it would allocate and release up to 128 MiB at unpredictable times.
 */
async function measureSilent(streams: number): Promise<void> {
  const isMany = streams > FIRST_STREAMS;
  const nodeOptions = isMany ? SMALL_YOUNG_GENERATION : "";
  await using gateway = await startGateway(nodeOptions);
  using sender = await startSender(100);
  const first = isMany ? FIRST_STREAMS : 0;
  const urls = Array.from({ length: streams }, (_, n) => `${sender.origin}/quiet/${n}`);
  const idle = await rssOf(gateway.pid);
  await installStreams(gateway, urls.slice(0, first));
  await until(() => sender.open() === first, { ceilingMs: LONG_MS, everyMs: 100 });
  const before = first === 0 ? idle : await settled(gateway.pid);
  const startedAt = performance.now();
  const cpuBefore = await cpuSecondsOf(gateway.pid);
  await installStreams(gateway, urls.slice(first));
  const installedSeconds = (performance.now() - startedAt) / 1000;
  await until(() => sender.open() === streams, { ceilingMs: LONG_MS, everyMs: 100 });
  const seconds = (performance.now() - startedAt) / 1000;
  const cpuSeconds = (await cpuSecondsOf(gateway.pid)) - cpuBefore;
  const after = await settled(gateway.pid);
  const inlet = (after - before) / (streams - first);
  print(
    `\n${streams} open streams, each with one event${first === 0 ? "" : `; ${first} of them were open before`}`,
  );
  print(`  inlet                       ${(inlet / 1024).toFixed(1)} KiB a stream`);
  if (first > 0)
    print(`  including the gateway       ${((after - idle) / streams / 1024).toFixed(1)} KiB a stream`);
  print(`  all installed after ${installedSeconds.toFixed(1)} s, open after ${seconds.toFixed(1)} s`);
  print(`  CPU of the gateway          ${((cpuSeconds * 1e3) / (streams - first)).toFixed(2)} ms a stream`);
  using other = await startSender(100);
  const single = startBaseline(`${other.origin}/quiet/`, Math.max(1, first), nodeOptions);
  await until(() => other.open() === Math.max(1, first), { ceilingMs: LONG_MS });
  const alone = await settled(single.pid ?? 0);
  single.kill();
  await until(() => other.open() === 0, { ceilingMs: LONG_MS });
  const many = startBaseline(`${other.origin}/quiet/`, streams, nodeOptions);
  await until(() => other.open() === streams, { ceilingMs: LONG_MS });
  const baseline = ((await settled(many.pid ?? 0)) - alone) / (streams - first);
  many.kill();
  print(`  baseline (eventsource+XADD) ${(baseline / 1024).toFixed(1)} KiB a stream`);
  if (streams === 1_000)
    goals.check("seconds until 1,000 streams are open", seconds, OPEN_GOAL_SECONDS, "most");
  if (streams === MEMORY_GOAL.streams)
    goals.check("bytes of memory per stream", inlet, MEMORY_GOAL.bytes, "most");
}

function startGateway(nodeOptions = ""): Promise<GatewayProcess> {
  return startGatewayProcess({
    INLET_DATA_DIR: join(dir, `data-${++gateways}`),
    REDIS_URL: `unix://${socket}`,
    INLET_ALLOW_NETWORKS: "127.0.0.0/8",
    INLET_LOG_LEVEL: "warn",
    NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ""} ${nodeOptions}`.trim(),
  });
}

/** Returns the topic of the first stream's events. */
async function installStreams(gateway: GatewayProcess, urls: readonly string[]): Promise<string> {
  const topics: string[] = [];
  for (let at = 0; at < urls.length; at += CHANNELS_AT_ONCE) {
    const channels = urls.slice(at, at + CHANNELS_AT_ONCE).map((url, n) => ({
      uid: `s${n}`,
      kind: "sse",
      config: { url, run: "always" },
      events: [{ type: "order" }],
    }));
    const { topicOf } = await installApp(gateway, channels);
    topics.push(topicOf("s0", "order"));
  }
  return topics[0] ?? "";
}

async function startSender(bytes: number): Promise<Sender> {
  const data = JSON.stringify({ amount: 12.5, filler: "x".repeat(bytes - 30) });
  const child = fork(here("sse-sender.ts"), [data]);
  let open = 0;
  const port = await new Promise<number>((resolve) => {
    child.on("message", (message: { readonly port?: number; readonly open?: number }) => {
      if (message.port !== undefined) resolve(message.port);
      open = message.open ?? open;
    });
  });
  return {
    origin: `http://127.0.0.1:${port}`,
    open: () => open,
    send: (to, send) => child.send({ to, send }),
    [Symbol.dispose]: () => child.kill(),
  };
}

function startBaseline(url: string, streams: number, nodeOptions = ""): ChildProcess {
  const args = [here("sse-baseline.ts"), socket, url, String(streams)];
  const env = { ...process.env, NODE_OPTIONS: nodeOptions };
  return spawn(process.execPath, args, { stdio: "inherit", env });
}

/** Returns the resident bytes once they stop growing. */
async function settled(pid: number): Promise<number> {
  let before = -1;
  let now = 0;
  await until(
    async () => {
      before = now;
      now = await rssOf(pid);
      return Math.abs(now - before) < MIB;
    },
    { ceilingMs: LONG_MS, everyMs: 2_000 },
  );
  return now;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
