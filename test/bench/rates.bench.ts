/**
 * Measures the latency of webhooks at fractions of the maximum rate of a gateway, and the cost per event.
 *
 * Requests arrive whether or not earlier ones have finished. Latencies start at the planned time of sending. Redis syncs each write. The
 * maximum rate is measured first, in the same run. Prints a Markdown table and the state of the machine.
 *
 * The goal requires an otherwise idle machine, because other load increases latencies. So the baseline is measured at the same rate, in
 * alternating rounds, and the time that Redis waits for the disk is printed too. Fails if the goal is missed.
 *
 * usage: npm run bench:rates [-- <rounds> [<seconds> [<bytes>]]]
 */
import { execFile } from "node:child_process";
import { readdir, stat } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { startGatewayProcess } from "../support/gateway-process.ts";
import type { ArrivalsPlan, ArrivalsResult } from "./arrivals.ts";
import { installChannel } from "./channel.ts";
import { cpuSecondsOf } from "./cpu.ts";
import { startBenchRedis } from "./redis.ts";
import { alternate, bodyOf, createGoals, median, planOf, startServer, type Target } from "./rounds.ts";

const [ROUNDS = 3, SECONDS = 6, BYTES = 468] = process.argv.slice(2).map(Number);
const SHARES = [0.25, 0.5, 0.75, 0.9];
/** Fraction of the maximum rate at which the goal applies. */
const GOAL_SHARE = 0.5;
const GOAL_MS = 10;
/** High enough that no entry is trimmed, because trimmed entries would be missing in the byte counts. */
const KEPT = { maxEntries: 100_000_000, maxBytes: 1024 ** 4 };
/** More connections than a gateway has in flight at these rates, unless it stalls. */
const CONNECTIONS = 256;

interface Measured extends ArrivalsResult {
  readonly gatewayMicros: number;
  readonly redisMicros: number;
}

const run = promisify(execFile);
const goals = createGoals();
await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const redisPid = redis.process.pid ?? 0;
const baseline = await startServer(stack, "baseline", [
  process.execPath,
  join(import.meta.dirname, "baseline.ts"),
  redis.socket,
]);
const gateway = stack.use(
  await startGatewayProcess({
    INLET_DATA_DIR: join(redis.dir, "data"),
    REDIS_URL: `unix://${redis.socket}`,
    INLET_LOG_LEVEL: "warn",
  }),
);
const { path } = await installChannel(gateway, { config: { retention: KEPT } });
const client = stack.adopt(new Redis({ path: redis.socket }), (connected) => connected.disconnect());
await client.config("SET", "latency-monitor-threshold", 1);
const port = Number(new URL(gateway.origin).port);
const plan = planOf(await bodyOf(BYTES));
const target = { name: "Inlet", pid: gateway.pid, port, path };

process.stdout.write(`${machine()}\n`);
const [closed = []] = await alternate({ rounds: ROUNDS, seconds: SECONDS, redisPid }, [[target, plan]]);
const maxRate = median(closed, "perSecond");

const atGoal: Measured[] = [];
const baselines: Measured[] = [];
await client.call("LATENCY", "RESET");
for (let round = 0; round < ROUNDS; round++) {
  atGoal.push(await measure(target, maxRate * GOAL_SHARE));
  baselines.push(await measure(baseline, maxRate * GOAL_SHARE));
}
const syncsMs = await longestSyncsMs();

const before = { memory: await usedMemory(), disk: await appendedBytes() };
const all = SHARES.map((): Measured[] => []);
let events = 0;
for (let round = 0; round < ROUNDS; round++) {
  for (const [index, share] of SHARES.entries()) {
    const measured = await measure(target, maxRate * share);
    events += measured.requests;
    all[index]?.push(measured);
  }
}
const bytesOfRedis = ((await usedMemory()) - before.memory) / events;
const bytesOfDisk = ((await appendedBytes()) - before.disk) / events;

process.stdout.write(
  `\n${BYTES} B, at most ${maxRate.toFixed(0)} requests/s (64 connections that wait for each response), ${ROUNDS} rounds of ${SECONDS} s, medians (least to most)\n\n` +
    "| of the maximum | requests/s | p50 | p99 | p99.9 | sent late by the generator, p99 | CPU of the gateway, 1,000 events | CPU of Redis, 1,000 events |\n|---|---|---|---|---|---|---|---|\n",
);
for (const [index, share] of SHARES.entries())
  printRow(`${share * 100} %`, maxRate * share, all[index] ?? []);
printRow(`${GOAL_SHARE * 100} %, alternating with the baseline`, maxRate * GOAL_SHARE, atGoal);
printRow("the baseline at that rate", maxRate * GOAL_SHARE, baselines);
process.stdout.write(
  `| maximum | ${maxRate.toFixed(0)} | | | | | ${median(closed, "cpuMicros").toFixed(0)} ms | ${median(closed, "redisMicros").toFixed(0)} ms |\n\n` +
    `An event of ${BYTES} B takes ${bytesOfRedis.toFixed(0)} B in Redis and ${bytesOfDisk.toFixed(0)} B in its append-only file.\n` +
    `While alternating with the baseline, seconds with a disk sync of at least 1 ms: ${syncsMs.length}; longest sync in each: ${spreadOf(syncsMs, 0)} ms.\n${machine()}\n`,
);
goals.check("p99 at half of the maximum, ms", middle(atGoal, "p99Ms"), GOAL_MS, "most");
goals.tell();

async function measure({ pid, port, path }: Target, perSecond: number): Promise<Measured> {
  const [gatewayBefore, redisBefore] = [await cpuSecondsOf(pid), await cpuSecondsOf(redisPid)];
  const whole: ArrivalsPlan = {
    ...plan,
    port,
    path,
    perSecond,
    seconds: SECONDS,
    connections: CONNECTIONS,
  };
  const { stdout } = await run(process.execPath, [
    join(import.meta.dirname, "arrivals.ts"),
    JSON.stringify(whole),
  ]);
  const result = JSON.parse(stdout) as ArrivalsResult;
  if (result.failures > 0) throw new Error(`${result.failures} of ${result.requests} requests failed`);
  const used = async (pid: number, since: number) =>
    (((await cpuSecondsOf(pid)) - since) * 1e6) / result.requests;
  return {
    ...result,
    gatewayMicros: await used(pid, gatewayBefore),
    redisMicros: await used(redisPid, redisBefore),
  };
}

function printRow(title: string, perSecond: number, rounds: readonly Measured[]): void {
  const ms = (key: "p50Ms" | "p99Ms" | "p999Ms" | "latenessP99Ms") => `${spread(rounds, key, 1)} ms`;
  const cells = [
    title,
    perSecond.toFixed(0),
    ...[ms("p50Ms"), ms("p99Ms"), ms("p999Ms"), ms("latenessP99Ms")],
    // Microseconds per event equal milliseconds per thousand events.
    ...[`${spread(rounds, "gatewayMicros", 0)} ms`, `${spread(rounds, "redisMicros", 0)} ms`],
  ];
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}

function middle(rounds: readonly Measured[], key: keyof Measured): number {
  return middleOf(rounds.map((one) => one[key]));
}

function middleOf(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}

/** Returns the longest sync of each second that had one of a millisecond or more. Redis remembers the last 160 of them. */
async function longestSyncsMs(): Promise<readonly number[]> {
  const seconds = (await client.call("LATENCY", "HISTORY", "aof-fsync-always")) as [number, number][];
  return seconds.map(([, ms]) => ms);
}

function spread(rounds: readonly Measured[], key: keyof Measured, digits: number): string {
  return spreadOf(
    rounds.map((one) => one[key]),
    digits,
  );
}

function spreadOf(values: readonly number[], digits: number): string {
  const [least, mostOf] = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(digits));
  return `${middleOf(values).toFixed(digits)} (${least}–${mostOf})`;
}

async function usedMemory(): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await client.info("memory"))?.[1]);
}

async function appendedBytes(): Promise<number> {
  const folder = join(redis.dir, "appendonlydir");
  const sizes = (await readdir(folder)).map(async (name) => (await stat(join(folder, name))).size);
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

function machine(): string {
  const [minute = 0, minutes = 0] = loadavg();
  return `Node.js ${process.version}, machine load ${minute.toFixed(1)} (${minutes.toFixed(1)} over five minutes)`;
}
