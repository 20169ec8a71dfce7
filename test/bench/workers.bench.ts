/**
 * Measures the cost per event when one, two and four gateways share one Redis and one PostgreSQL.
 *
 * Prints the CPU time per event, of all gateways and of Redis, and the number of gateway cores that one core of Redis can serve. Each
 * gateway has 64 connections. Rounds alternate, so that other load on the machine affects all of them. On a machine with fewer cores than
 * processes, rely on the CPU times and not on the rate. Redis syncs each write. Prints by how much a goal is missed, and then fails.
 *
 * usage: npm run bench:workers [-- <rounds> [<seconds>]]
 */
import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, realpath } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { installChannel } from "./channel.ts";
import { cpuSecondsOf, lowerQuartile, median, spreadOf } from "./cpu.ts";
import type { LoadPlan, LoadResult } from "./load.ts";
import { startBenchPostgres } from "./postgres.ts";
import { startBenchRedis } from "./redis.ts";
import { bodyOf, createGoals, planOf } from "./rounds.ts";

const [ROUNDS = 5, SECONDS = 4] = process.argv.slice(2).map(Number);
const COUNTS = [1, 2, 4];
const WARM_SECONDS = 6;
/** Maximum ratio of Redis's CPU time per event with several gateways to that with one. */
const GOAL = 1.15;

interface Measured {
  readonly perSecond: number;
  readonly gatewayMicros: number;
  readonly redisMicros: number;
}

const run = promisify(execFile);
const goals = createGoals();
await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const redisPid = redis.process.pid ?? 0;
const dir = join(await realpath(redis.dir), "postgres");
await mkdir(dir);
const postgres = stack.use(await startBenchPostgres(dir));
const env = {
  DATABASE_URL: postgres.url,
  INLET_MASTER_KEY: randomBytes(32).toString("base64"),
  REDIS_URL: `unix://${redis.socket}`,
  INLET_LOG_LEVEL: "warn",
};
const gateways: Awaited<ReturnType<typeof startGatewayProcess>>[] = [];
for (let n = 0; n < Math.max(...COUNTS); n++) {
  gateways.push(
    stack.use(await startGatewayProcess({ ...env, INLET_DATA_DIR: join(redis.dir, `gateway-${n}`) })),
  );
}
const [first] = gateways;
if (first === undefined) throw new Error("there is no gateway");
const { path } = await installChannel(first);
const plan = planOf(await bodyOf(468));

process.stdout.write(`machine load ${loadavg()[0]?.toFixed(1)}\n`);
for (const gateway of gateways) await load([gateway], WARM_SECONDS);
const all = new Map(COUNTS.map((count) => [count, [] as Measured[]]));
for (let round = 0; round < ROUNDS; round++) {
  for (const [count, measured] of all) measured.push(await load(gateways.slice(0, count), SECONDS));
}

process.stdout.write(
  `\n468 B, ${ROUNDS} rounds of ${SECONDS} s, lower quartiles of CPU time, medians of the rates (least to most)\n\n` +
    "| gateways | events/s | CPU of the gateways, an event | CPU of Redis, an event | cores of gateways to one of Redis |\n|---|---|---|---|---|\n",
);
const figuresOf = (rounds: readonly Measured[], key: keyof Measured) => rounds.map((round) => round[key]);
for (const [count, rounds] of all) {
  const [gatewayMicros, redisMicros] = [figuresOf(rounds, "gatewayMicros"), figuresOf(rounds, "redisMicros")];
  const rates = figuresOf(rounds, "perSecond");
  const cells = [
    ...[
      count,
      `${median(rates).toFixed(0)} (${Math.min(...rates).toFixed(0)}–${Math.max(...rates).toFixed(0)})`,
    ],
    ...[`${spreadOf(gatewayMicros)} µs`, `${spreadOf(redisMicros)} µs`],
    (lowerQuartile(gatewayMicros) / lowerQuartile(redisMicros)).toFixed(1),
  ];
  process.stdout.write(`| ${cells.join(" | ")} |\n`);
}
process.stdout.write(`\nmachine load ${loadavg()[0]?.toFixed(1)}\n`);
for (const count of COUNTS.slice(1)) {
  const [some, one] = [all.get(count) ?? [], all.get(1) ?? []];
  const ratioOf = (key: keyof Measured) =>
    lowerQuartile(figuresOf(some, key)) / lowerQuartile(figuresOf(one, key));
  goals.check(`CPU of Redis, ${count} gateways to one`, ratioOf("redisMicros"), GOAL, "most");
  // Without a goal: with more processes than cores, processes wait for each other, and smaller batches per
  // iteration cost more.
  goals.check(`CPU of the gateways, ${count} to one`, ratioOf("gatewayMicros"));
}
goals.tell();

async function load(loaded: readonly (typeof gateways)[number][], seconds: number): Promise<Measured> {
  const pids = loaded.map(({ pid }) => pid);
  const sumCpuSeconds = async (some: readonly number[]): Promise<number> =>
    (await Promise.all(some.map(cpuSecondsOf))).reduce((sum, one) => sum + one, 0);
  const before = { gateways: await sumCpuSeconds(pids), redis: await sumCpuSeconds([redisPid]) };
  const results = await Promise.all(
    loaded.map(async ({ origin }) => {
      const whole: LoadPlan = { ...plan, path, port: Number(new URL(origin).port), seconds };
      const { stdout } = await run(process.execPath, [
        join(import.meta.dirname, "load.ts"),
        JSON.stringify(whole),
      ]);
      return JSON.parse(stdout) as LoadResult;
    }),
  );
  const failures = results.reduce((sum, one) => sum + one.failures, 0);
  if (failures > 0) throw new Error(`${failures} requests failed`);
  const events = results.reduce((sum, { requests }) => sum + requests, 0);
  return {
    perSecond: results.reduce((sum, { requests, seconds: took }) => sum + requests / took, 0),
    gatewayMicros: (((await sumCpuSeconds(pids)) - before.gateways) * 1e6) / events,
    redisMicros: (((await sumCpuSeconds([redisPid])) - before.redis) * 1e6) / events,
  };
}
