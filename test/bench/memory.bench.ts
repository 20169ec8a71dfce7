/**
 * Measures the memory that events need.
 *
 * For Redis, prints the bytes per topic entry beyond its data and per remembered id, over 100,000 events received by hooks. For the
 * gateway, prints its memory after the last event and after a minute of rest. Other load on the machine only matters if it delays the
 * garbage collector of the gateway. Prints by how much a goal is missed, and then fails.
 *
 * usage: npm run bench:memory [-- <events>]
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { Redis } from "ioredis";
import { startGatewayProcess } from "../support/gateway-process.ts";
import { installChannel } from "./channel.ts";
import { rssOf } from "./cpu.ts";
import type { LoadPlan } from "./load.ts";
import { startBenchRedis } from "./redis.ts";
import { bodyOf, createGoals, planOf } from "./rounds.ts";

const [EVENTS = 100_000] = process.argv.slice(2).map(Number);
const GOALS = { entryBytes: 200, idBytes: 45 };
const REST_MS = 60_000;

const run = promisify(execFile);
const goals = createGoals();
await using stack = new AsyncDisposableStack();
const redis = stack.use(await startBenchRedis());
const gateway = stack.use(
  await startGatewayProcess({
    INLET_DATA_DIR: join(redis.dir, "data"),
    REDIS_URL: `unix://${redis.socket}`,
    INLET_LOG_LEVEL: "warn",
  }),
);
const { path, topic } = await installChannel(gateway, {
  config: { retention: { maxEntries: 100_000_000, maxBytes: 1024 ** 4 } },
});
const client = stack.adopt(new Redis({ path: redis.socket }), (connected) => connected.disconnect());
const body = await bodyOf(468);
const port = Number(new URL(gateway.origin).port);
const idle = await residentMiB();
let entries = 0;
while (entries < EVENTS) {
  const whole: LoadPlan = { ...planOf(body), path, port, seconds: 2 };
  await run(process.execPath, [join(import.meta.dirname, "load.ts"), JSON.stringify(whole)]);
  entries = await client.xlen(topic);
}

const entryBytes = (await bytesOf(topic)) / entries - Buffer.byteLength(body);
let idBytes = 0;
let idKeys = 0;
for (const key of await listIdKeys()) {
  idBytes += await bytesOf(key);
  idKeys++;
}
process.stdout.write(
  `${entries} events of ${Buffer.byteLength(body)} B in one topic; ids in ${idKeys} keys\n`,
);
goals.check("bytes of Redis per entry, beyond its data", entryBytes, GOALS.entryBytes, "most");
goals.check("bytes of Redis per remembered id", idBytes / entries, GOALS.idBytes, "most");
const [, used] = /^used_memory:(\d+)/m.exec(await client.info("memory")) ?? [];
process.stdout.write(`  total Redis memory per event: ${(Number(used) / entries).toFixed(0)} B\n`);
const after = await residentMiB();
await setTimeout(REST_MS);
const rested = await residentMiB();
process.stdout.write(
  `  gateway: ${idle} MiB at startup, ${after} MiB after ${entries} events, ${rested} MiB after a minute of rest\n`,
);
goals.tell();

async function bytesOf(key: string): Promise<number> {
  return Number(await client.memory("USAGE", key, "SAMPLES", 0));
}

/** Returns the keys that store the topic's remembered ids. */
async function listIdKeys(): Promise<readonly string[]> {
  const found = new Set<string>();
  const stream = client.scanStream({ match: `{${topic}}:*`, count: 1_000 });
  for await (const keys of stream) for (const key of keys as string[]) found.add(key);
  return [...found];
}

async function residentMiB(): Promise<number> {
  return Math.round((await rssOf(gateway.pid)) / 1024 ** 2);
}
