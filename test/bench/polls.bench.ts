/**
 * Measures polls, with servers on loopback.
 *
 * - The engine alone, with empty polls: the delay of polls with thousands of schedules, and the cost per poll for this process and Redis.
 * - The same with all schedules due in the same second, which offsets normally prevent.
 * - A whole gateway with the same number of polling channels, where each poll finds and publishes one new item.
 * - A gateway with more polls than it can do.
 *
 * Fails if a goal is missed.
 *
 * usage: npm run bench:polls [-- --channels 5000 --seconds 60]
 */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { openTestRedis } from "../bus/support.ts";
import { startPollsWorker, wanted } from "../channels/pull/polls/polls-support.ts";
import { installApp } from "../support/channels.ts";
import { type GatewayProcess, readMetrics, startGatewayProcess } from "../support/gateway-process.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { until } from "../support/until.ts";
import { readFlags } from "./flags.ts";
import { createGoals } from "./rounds.ts";

const goals = createGoals();
const { channels: CHANNELS, seconds: SECONDS } = readFlags({ channels: 5_000, seconds: 60 });
const BUSY_INTERVAL_SECONDS = 5;
const BUSY_SECONDS = SECONDS / 3;
const WARM_UP_MS = 10_000;
/** Maximum number of channels in one blueprint. */
const CHANNELS_AT_ONCE = 100;
const LONG_MS = 300_000;
/** Bucket bounds of the histogram of poll delays. */
const BUCKETS_MS = [1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000];
/** Goals: maximum delay of polls, and polls per second of a worker with its own core. */
const GOALS = { lateMs: 250, pollsPerSecond: 800 } as const;

await measureEngine(`engine alone, one interval of ${SECONDS} s`, SECONDS, {
  schedule: { everySeconds: SECONDS, jitter: 0.1 },
});
await measureEngine("engine alone, all at one second of each minute", Math.max(60, SECONDS), {
  schedule: { cron: "* * * * *", timezone: "UTC", jitter: 0 },
});
const calm = { intervalSeconds: SECONDS, seconds: SECONDS };
const { lateMs } = await measureGateway(`gateway, one interval of ${SECONDS} s`, calm);
goals.check("p99 of the poll delay, ms", lateMs, GOALS.lateMs, "most");
const busy = { intervalSeconds: BUSY_INTERVAL_SECONDS, seconds: BUSY_SECONDS };
const { cpuMs } = await measureGateway("gateway, more than it can do", busy);
goals.check("polls per second of CPU time", 1_000 / cpuMs, GOALS.pollsPerSecond);
goals.tell();

async function measureEngine(
  what: string,
  seconds: number,
  options: Parameters<typeof wanted>[1],
): Promise<void> {
  await using server = await startRedis();
  await using redis = await openTestRedis(server.url);
  let polls = 0;
  const lagsMs: number[] = [];
  await using worker = startPollsWorker(redis, async () => {
    polls++;
    return { kind: "done" };
  });
  worker.metrics.pollLagSeconds.observe = (first: number | object, second?: number) => {
    lagsMs.push(1_000 * (typeof first === "number" ? first : (second ?? 0)));
  };
  worker.engine.sync(Array.from({ length: CHANNELS }, (_, i) => wanted(i + 1, options)));
  await until(() => polls >= CHANNELS, { ceilingMs: LONG_MS, everyMs: 50 });
  await delay(WARM_UP_MS);
  [polls, lagsMs.length] = [0, 0];
  const cpu = process.cpuUsage();
  const redisBefore = await cpuSecondsOf(server);
  await delay(seconds * 1_000);
  const { user, system } = process.cpuUsage(cpu);
  const redisMs = ((await cpuSecondsOf(server)) - redisBefore) * 1_000;
  print(`\n${what}, ${CHANNELS} schedules`);
  print(`  polls       ${(polls / seconds).toFixed(1)}/s`);
  print(`  delay       ${percentiles(lagsMs)}`);
  print(
    `  CPU a poll  ${((user + system) / 1_000 / polls).toFixed(2)} ms here, ${(redisMs / polls).toFixed(2)} ms in Redis`,
  );
}

async function measureGateway(
  what: string,
  { intervalSeconds, seconds }: { readonly intervalSeconds: number; readonly seconds: number },
): Promise<Measured> {
  const dir = await mkdtemp(join(tmpdir(), "inlet-bench-"));
  await using server = await startRedis();
  let requests = 0;
  const upstream = createServer((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify([{ id: ++requests, amount: 12.5, state: "paid" }]));
  }).listen(0, "127.0.0.1");
  try {
    await using gateway = await startGatewayProcess({
      INLET_DATA_DIR: dir,
      REDIS_URL: server.url,
      INLET_ALLOW_NETWORKS: "127.0.0.0/8",
      INLET_POLLS_PER_ORIGIN: "1000",
      INLET_POLLS_PER_ORGANIZATION: "1000",
      INLET_LOG_LEVEL: "warn",
    });
    const url = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/items`;
    await installPolls(gateway, url, intervalSeconds);
    await until(() => requests >= CHANNELS, { ceilingMs: LONG_MS, everyMs: 50 });
    await delay(WARM_UP_MS);
    return await measure(gateway, server, () => requests, seconds, what);
  } finally {
    upstream.close();
    upstream.closeAllConnections();
    await rm(dir, { recursive: true, force: true });
  }
}

interface Measured {
  readonly lateMs: number;
  readonly cpuMs: number;
}

async function measure(
  gateway: GatewayProcess,
  server: RedisServer,
  countRequests: () => number,
  seconds: number,
  what: string,
): Promise<Measured> {
  const requestsBefore = countRequests();
  const before = await metricsOf(gateway);
  const redisBefore = await cpuSecondsOf(server);
  await delay(seconds * 1_000);
  const polls = countRequests() - requestsBefore;
  const after = await metricsOf(gateway);
  const redisMs = ((await cpuSecondsOf(server)) - redisBefore) * 1_000;
  const increaseOf = (name: string): number => (after.get(name) ?? 0) - (before.get(name) ?? 0);
  print(`\n${what}, ${CHANNELS} channels, one new item each time`);
  print(`  polls       ${(polls / seconds).toFixed(1)}/s`);
  print(`  delay       ${bucketPercentiles(increaseOf)}`);
  const cpuMs = increaseOf("process_cpu_seconds_total") * 1_000;
  print(
    `  CPU a poll  ${(cpuMs / polls).toFixed(2)} ms in the gateway, ${(redisMs / polls).toFixed(2)} ms in Redis`,
  );
  return { lateMs: lateWithin(increaseOf, 0.99), cpuMs: cpuMs / polls };
}

async function installPolls(gateway: GatewayProcess, url: string, intervalSeconds: number): Promise<void> {
  for (let at = 0; at < CHANNELS; at += CHANNELS_AT_ONCE) {
    const channels = Array.from({ length: Math.min(CHANNELS_AT_ONCE, CHANNELS - at) }, (_, n) => ({
      uid: `p${n}`,
      kind: "polling",
      config: {
        run: "always",
        request: { url },
        schedule: { intervalSeconds },
        discriminator: { by: "sequence", path: "$.id" },
        startAt: "earliest",
      },
      events: [{ type: "order" }],
    }));
    await installApp(gateway, channels);
  }
}

async function metricsOf({ origin }: GatewayProcess): Promise<ReadonlyMap<string, number>> {
  const text = await readMetrics(origin);
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ")))]),
  );
}

async function cpuSecondsOf({ client }: RedisServer): Promise<number> {
  const info = await client.info("cpu");
  const of = (name: string): number => Number(new RegExp(`^${name}:([\\d.]+)`, "m").exec(info)?.[1]);
  return of("used_cpu_user") + of("used_cpu_sys");
}

function percentiles(lagsMs: number[]): string {
  lagsMs.sort((a, b) => a - b);
  const at = (share: number): string =>
    `${(lagsMs[Math.floor(lagsMs.length * share)] ?? Number.NaN).toFixed(0)} ms`;
  return `p50 ${at(0.5)}  p99 ${at(0.99)}  max ${(lagsMs.at(-1) ?? Number.NaN).toFixed(0)} ms`;
}

/** Returns an upper bound in ms, from the buckets of the histogram. */
function lateWithin(of: (name: string) => number, share: number): number {
  const count = of("inlet_poll_lag_seconds_count");
  const isEnough = (ms: number): boolean =>
    of(`inlet_poll_lag_seconds_bucket{le="${ms / 1_000}"}`) >= share * count;
  return BUCKETS_MS.find(isEnough) ?? Number.POSITIVE_INFINITY;
}

function bucketPercentiles(of: (name: string) => number): string {
  const [p50, p99] = [0.5, 0.99].map((share) => `at most ${lateWithin(of, share)} ms`);
  return `p50 ${p50}  p99 ${p99}  (${of("inlet_poll_lag_seconds_count")} scheduled)`;
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}
