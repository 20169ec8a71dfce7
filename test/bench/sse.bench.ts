/**
 * Event streams. First: events a second from the socket to the Redis stream, against the floor (`sse-floor.ts`: the `eventsource`
 * package, `JSON.parse`, one XADD), alternating in one run, on one Redis with `appendfsync always`. Then the
 * memory of an open, silent stream, of the same two.
 *
 * usage: node test/bench/sse.bench.ts [<streams> …]  (with numbers, memory alone; without, events and 1,000 streams)
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { until } from "../support/until.ts";

const ROUNDS = 5;
const EVENTS = 20_000;
const GOAL_EVENTS_PER_SECOND = 10_000;
/** The most channels of one blueprint. */
const CHANNELS_AT_ONCE = 100;
const PAGE_BYTES = 4096;
const LONG_MS = 300_000;

interface Channel {
  readonly id: string;
  readonly uid: string;
  readonly appId: string;
  readonly organizationId: string;
}

interface Sender extends Disposable {
  readonly origin: string;
  readonly open: () => number;
  readonly send: (count: number) => void;
}

const here = (name: string): string => join(import.meta.dirname, name);
const streamCounts = process.argv.slice(2).map(Number);
const dir = await mkdtemp(join(tmpdir(), "inlet-bench-"));
const socket = join(dir, "redis.sock");
const redisServer = spawn(
  "redis-server",
  [
    ...["--port", "0", "--unixsocket", socket, "--dir", dir, "--save", ""],
    ...["--appendonly", "yes", "--appendfsync", "always"],
    // A rewrite falls into some rounds and not into others: it would take a core for seconds.
    ...["--auto-aof-rewrite-percentage", "0"],
  ],
  { stdio: "ignore" },
);
let gateways = 0;
const redis = new Redis({ path: socket });
// Resolves when it listens.
redis.on("error", () => {});
try {
  if (streamCounts.length === 0) for (const bytes of [300, 3_000]) await measureEvents(bytes);
  for (const streams of streamCounts.length > 0 ? streamCounts : [1_000]) await measureMemory(streams);
} finally {
  redis.disconnect();
  redisServer.kill();
  await once(redisServer, "exit");
  await rm(dir, { recursive: true, force: true });
}

async function measureEvents(bytes: number): Promise<void> {
  await using gateway = await startGateway();
  using sender = await startSender(bytes);
  const [channel] = await installStreams(gateway, [`${sender.origin}/flood/0`]);
  if (channel === undefined) throw new Error("the app has no channel");
  const { appId, organizationId, uid } = channel;
  const topic = `events.${organizationId}.apps.app.event_received.${appId}.${uid}.order`;
  await until(() => sender.open() === 1, { ceilingMs: LONG_MS });
  const inlets: number[] = [];
  const floors: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    const inlet = await eventsPerSecond(topic, sender);
    await setState(gateway, channel, "pause", sender, 0);
    const floorProcess = startFloor(`${sender.origin}/flood/`, 1);
    await until(() => sender.open() === 1, { ceilingMs: LONG_MS });
    const floor = await eventsPerSecond("floor", sender);
    floorProcess.kill();
    await until(() => sender.open() === 0, { ceilingMs: LONG_MS });
    await setState(gateway, channel, "resume", sender, 1);
    // The first round warms both up.
    if (round > 0) inlets.push(inlet);
    if (round > 0) floors.push(floor);
  }
  await setState(gateway, channel, "pause", sender, 0);
  const inlet = medianOf(inlets);
  const floor = medianOf(floors);
  print(`\n${bytes} B an event, one stream, median of ${ROUNDS} rounds of ${EVENTS} events`);
  print(`  floor (eventsource + XADD)  ${floor.toFixed(0).padStart(6)} events/s`);
  print(
    `  inlet                       ${inlet.toFixed(0).padStart(6)} events/s  (${inlets.map(Math.round).join(" ")})`,
  );
  print(`  ratio                       ${(inlet / floor).toFixed(2)}`);
  if (bytes < 1000 && inlet < GOAL_EVENTS_PER_SECOND) process.exitCode = 1;
}

async function eventsPerSecond(topic: string, sender: Sender): Promise<number> {
  const target = (await addedTo(topic)) + EVENTS;
  const began = performance.now();
  sender.send(EVENTS);
  await until(async () => (await addedTo(topic)) >= target, { ceilingMs: LONG_MS });
  return (EVENTS * 1000) / (performance.now() - began);
}

/** How many entries a stream has ever got. */
async function addedTo(topic: string): Promise<number> {
  const info = (await redis.xinfo("STREAM", topic).catch(() => [])) as unknown[];
  return Number(info[info.indexOf("entries-added") + 1] ?? 0);
}

/** On a gateway of its own: one that has done something before has memory to spare. */
async function measureMemory(streams: number): Promise<void> {
  await using gateway = await startGateway();
  using sender = await startSender(100);
  const urls = Array.from({ length: streams }, (_, n) => `${sender.origin}/quiet/${n}`);
  const before = await rssOf(gateway.pid);
  const began = performance.now();
  await installStreams(gateway, urls);
  await until(() => sender.open() === streams, { ceilingMs: LONG_MS, everyMs: 100 });
  const seconds = (performance.now() - began) / 1000;
  await settled(gateway.pid);
  const inlet = ((await rssOf(gateway.pid)) - before) / streams;
  print(`\n${streams} open streams, each with one event`);
  print(
    `  inlet                       ${(inlet / 1024).toFixed(1)} KiB a stream, all open after ${seconds.toFixed(1)} s`,
  );
  using other = await startSender(100);
  const single = startFloor(`${other.origin}/quiet/`, 1);
  await until(() => other.open() === 1, { ceilingMs: LONG_MS });
  const alone = await settled(single.pid ?? 0);
  single.kill();
  await until(() => other.open() === 0, { ceilingMs: LONG_MS });
  const many = startFloor(`${other.origin}/quiet/`, streams);
  await until(() => other.open() === streams, { ceilingMs: LONG_MS });
  const floor = ((await settled(many.pid ?? 0)) - alone) / streams;
  many.kill();
  print(`  floor (eventsource + XADD)  ${(floor / 1024).toFixed(1)} KiB a stream`);
}

function startGateway(): Promise<GatewayProcess> {
  return startGatewayProcess({
    INLET_DATA_DIR: join(dir, `data-${++gateways}`),
    REDIS_URL: `unix://${socket}`,
    INLET_ALLOW_NETWORKS: "127.0.0.0/8",
    INLET_LOG_LEVEL: "warn",
  });
}

async function installStreams(gateway: GatewayProcess, urls: readonly string[]): Promise<readonly Channel[]> {
  const installed: Channel[] = [];
  for (let at = 0; at < urls.length; at += CHANNELS_AT_ONCE) {
    const channels = urls.slice(at, at + CHANNELS_AT_ONCE).map((url, n) => ({
      uid: `s${n}`,
      kind: "sse",
      config: { url, run: "always" },
      events: [{ type: "order" }],
    }));
    const blueprint = await gateway.api<{ id: string }>("POST", "/blueprints", {
      title: "streams",
      channels,
    });
    const app = await gateway.api<{ channels: Channel[] }>("POST", "/apps/install", {
      blueprintId: blueprint.id,
    });
    installed.push(...app.channels);
  }
  return installed;
}

async function setState(
  gateway: GatewayProcess,
  { appId, id }: Channel,
  action: "pause" | "resume",
  sender: Sender,
  open: number,
): Promise<void> {
  await gateway.api("POST", `/apps/${appId}/channels/${id}/${action}`, {});
  await until(() => sender.open() === open, { ceilingMs: LONG_MS });
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
    send: (send) => child.send({ send }),
    [Symbol.dispose]: () => child.kill(),
  };
}

function startFloor(url: string, streams: number): ChildProcess {
  return spawn(process.execPath, [here("sse-floor.ts"), socket, url, String(streams)], { stdio: "inherit" });
}

/** Resident bytes of a process (proc(5), statm). */
async function rssOf(pid: number): Promise<number> {
  return Number((await readFile(`/proc/${pid}/statm`, "utf8")).split(" ")[1]) * PAGE_BYTES;
}

/** Resident bytes once they no longer grow. */
async function settled(pid: number): Promise<number> {
  let before = -1;
  let now = 0;
  await until(
    async () => {
      before = now;
      now = await rssOf(pid);
      return Math.abs(now - before) < 1024 * 1024;
    },
    { ceilingMs: LONG_MS, everyMs: 2_000 },
  );
  return now;
}

function medianOf(all: readonly number[]): number {
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
