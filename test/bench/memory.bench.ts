/**
 * Measures the memory and the start of a gateway, and the cost of many channels.
 *
 * - The time from the start of the process until the gateway is ready, and its memory then.
 * - The bytes of Redis per topic entry beyond its data and per remembered id, and the memory of the gateway after these events.
 * - The same start with many channels, the CPU time per request if all of them are called in turn, and the memory afterwards.
 *
 * Redis syncs each write. Other load on the machine delays the start and the garbage collector of the gateway. Prints by how much a goal
 * is missed, and then fails.
 *
 * usage: npm run bench:memory [-- --events 100000 --channels 100000 --rounds 5 --seconds 3 --rest 60]
 */
import { randomBytes } from "node:crypto";
import { readFile, realpath, writeFile } from "node:fs/promises";
import { loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Redis } from "ioredis";
import { channelOf, installApp } from "../support/channels.ts";
import { type GatewayProcess, startGatewayProcess } from "../support/gateway-process.ts";
import { cpuSecondsOf, rssOf } from "./cpu.ts";
import { readFlags } from "./flags.ts";
import { copyChannel } from "./many-channels.ts";
import { startBenchRedis } from "./redis.ts";
import {
  alternate,
  bodyOf,
  createGoals,
  ID_HEADER,
  measure,
  medianOf,
  planOf,
  print,
  type Target,
} from "./rounds.ts";

const flags = readFlags({ events: 100_000, channels: 100_000, rounds: 5, seconds: 3, rest: 60 });
const GOALS = {
  firstReadySeconds: 4,
  readySeconds: 1.5,
  readySecondsWithChannels: 5,
  readyMiB: 133,
  entryBytes: 200,
  idBytes: 45,
  channelsCpu: 1.05,
};
/** More than the concurrent deliveries, because deliveries that share a topic in a call to Redis are cheaper. */
const FEW_CHANNELS = 100;
/** High enough that no entry is trimmed, because trimmed entries would be missing in the byte counts. */
const RETENTION = { maxEntries: 100_000_000, maxBytes: 1024 ** 4 };
const LOAD_SECONDS = 2;

const goals = createGoals();
await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const redisPid = redis.process.pid ?? 0;
const dataDir = join(await realpath(redis.dir), "data");
const masterKey = randomBytes(32);
const client = stack.adopt(new Redis({ path: redis.socket }), (connected) => connected.disconnect());
// The client reports errors until the server listens, and then connects.
client.on("error", () => {});
const body = await bodyOf(468);
const plan = planOf(body);
process.stdout.write(`Node.js ${process.version}, machine load ${loadavg()[0]?.toFixed(1)}\n`);

const pathsFile = join(redis.dir, "paths.json");
{
  // The first start creates the database.
  await using _ = await startMeasured("for the first time", GOALS.firstReadySeconds);
}
{
  await using gateway = await startMeasured("without channels", GOALS.readySeconds, GOALS.readyMiB);
  const app = await installApp(gateway, [
    {
      uid: "hooks",
      kind: "webhook",
      config: { retention: RETENTION },
      events: [{ type: "push", typePath: "$headers['x-github-event']", idPath: `$headers['${ID_HEADER}']` }],
    },
  ]);
  const path = new URL(channelOf(app).url ?? "").pathname;
  await measureEvents(gateway, path, app.topicOf("hooks", "push"));
  await copyChannel({ dataDir, masterKey, appId: app.id, times: flags.channels, pathsFile });
}
{
  await using gateway = await startMeasured(
    `with ${flags.channels} channels`,
    GOALS.readySecondsWithChannels,
  );
  await measureChannels(gateway);
}
goals.tell();

async function start() {
  const startedMs = performance.now();
  const gateway = await startGatewayProcess({
    INLET_DATA_DIR: dataDir,
    INLET_MASTER_KEY: masterKey.toString("base64"),
    REDIS_URL: `unix://${redis.socket}`,
    INLET_LOG_LEVEL: "warn",
  });
  return { gateway, seconds: (performance.now() - startedMs) / 1_000 };
}

async function startMeasured(what: string, secondsGoal: number, mibGoal?: number): Promise<GatewayProcess> {
  const { gateway, seconds } = await start();
  const cpuSeconds = await cpuSecondsOf(gateway.pid);
  process.stdout.write(`\nA gateway started ${what}: ready after ${cpuSeconds.toFixed(1)} s of CPU time\n`);
  goals.check(`seconds until a gateway started ${what} is ready`, seconds, secondsGoal, "most");
  goals.check(`MiB of a gateway started ${what}`, await residentMiB(gateway), mibGoal, "most");
  return gateway;
}

async function measureEvents(gateway: GatewayProcess, path: string, topic: string): Promise<void> {
  const target = targetOf(gateway, path);
  let entries = 0;
  while (entries < flags.events) {
    await measure(target, { ...plan, seconds: LOAD_SECONDS }, redisPid);
    entries = await client.xlen(topic);
  }
  const entryBytes = (await bytesOf(topic)) / entries - Buffer.byteLength(body);
  let idBytes = 0;
  for (const key of await listIdKeys(topic)) idBytes += await bytesOf(key);
  process.stdout.write(`\n${entries} events of ${Buffer.byteLength(body)} B in one topic\n`);
  goals.check("bytes of Redis per entry, beyond its data", entryBytes, GOALS.entryBytes, "most");
  goals.check("bytes of Redis per remembered id", idBytes / entries, GOALS.idBytes, "most");
  const [, used] = /^used_memory:(\d+)/m.exec(await client.info("memory")) ?? [];
  const after = await residentMiB(gateway);
  await delay(flags.rest * 1_000);
  process.stdout.write(
    `  total Redis memory per event: ${(Number(used) / entries).toFixed(0)} B\n` +
      `  gateway: ${after} MiB after these events, ${await residentMiB(gateway)} MiB after ${flags.rest} s of rest\n`,
  );
}

async function measureChannels(gateway: GatewayProcess): Promise<void> {
  const paths: readonly string[] = JSON.parse(await readFile(pathsFile, "utf8"));
  const fewFile = join(redis.dir, "few-paths.json");
  await writeFile(fewFile, JSON.stringify(paths.slice(0, FEW_CHANNELS)));
  const target = targetOf(gateway, "");
  for (let called = 0; called < paths.length; ) {
    const whole = { ...plan, pathsFile, from: called, seconds: LOAD_SECONDS };
    called += (await measure(target, whole, redisPid)).requests;
  }
  const [few = [], many = []] = await alternate({ ...flags, redisPid }, [
    [target, { ...plan, pathsFile: fewFile }],
    [target, { ...plan, pathsFile }],
  ]);
  process.stdout.write(`\n468 B to channels in turn\n`);
  print(`${FEW_CHANNELS} channels`, few);
  print(`${paths.length} channels`, many);
  const ratioOf = (key: "cpuMicros" | "redisMicros") => medianOf(many, key) / medianOf(few, key);
  goals.check("CPU of the gateway, many channels to few", ratioOf("cpuMicros"), GOALS.channelsCpu, "most");
  goals.check("CPU of Redis, many channels to few", ratioOf("redisMicros"), GOALS.channelsCpu, "most");
  process.stdout.write(`  gateway: ${await residentMiB(gateway)} MiB after calls to all channels\n`);
}

function targetOf({ pid, origin }: GatewayProcess, path: string): Target {
  return { name: "Inlet", pids: [pid], port: Number(new URL(origin).port), path };
}

async function bytesOf(key: string): Promise<number> {
  return Number(await client.memory("USAGE", key, "SAMPLES", 0));
}

/** Returns the keys that store the topic's remembered ids. */
async function listIdKeys(topic: string): Promise<readonly string[]> {
  const found = new Set<string>();
  const stream = client.scanStream({ match: `{${topic}}:*`, count: 1_000 });
  for await (const keys of stream) for (const key of keys as string[]) found.add(key);
  return [...found];
}

async function residentMiB({ pid }: GatewayProcess): Promise<number> {
  return Math.round((await rssOf(pid)) / 1024 ** 2);
}
