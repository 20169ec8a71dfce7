/**
 * Measures the longest stall of a gateway's event loop while 200 channels are installed, 50 of GitHub's schemas are compiled, and 16
 * connections send deliveries. Prints the stall in wall time, to which other processes add, and in CPU time of the main thread. The goal
 * applies to the CPU time.
 *
 * usage: npm run bench:stalls
 */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { EVENT_NAMES, eventSchema } from "../lib/json-schema/github.ts";
import { startGatewayProcess } from "../support/gateway-process.ts";
import type { LoadPlan, LoadResult } from "./load.ts";
import { startBenchRedis } from "./redis.ts";

const GOAL_MS = 50;
const SCHEMAS = 50;
const INSTALLS = 10;
const LOAD_SECONDS = 20;
const BY_HEADERS = { typePath: "$headers['x-github-event']", idPath: "$headers['x-github-delivery']" };

const here = (name: string): string => join(import.meta.dirname, name);
const run = promisify(execFile);
await using redis = await startBenchRedis();
const stalls = join(redis.dir, "stalls.json");
await using gateway = await startGatewayProcess({
  INLET_DATA_DIR: join(redis.dir, "data"),
  REDIS_URL: `unix://${redis.socket}`,
  INLET_LOG_LEVEL: "warn",
  STALLS_FILE: stalls,
  NODE_OPTIONS: `--import ${here("stall-watch.ts")}`,
});

const sending = await blueprint("sending", [channel("hooks", [{ type: "push", ...BY_HEADERS }])]);
const app = await gateway.api<{ channels: readonly { url: string }[] }>("POST", "/apps/install", {
  blueprintId: sending,
});
const url = new URL(app.channels[0]?.url ?? "");
await load(3);
gateway.kill("SIGUSR2");
const loading = load(LOAD_SECONDS);
await delay(1_000);

const startedMs = performance.now();
const twenty = Array.from({ length: 20 }, (_, i) => channel(`c${i}`, [{ type: "t", typePath: "$.type" }]));
const many = await blueprint("many", twenty);
for (let i = 0; i < INSTALLS; i++) await gateway.api("POST", "/apps/install", { blueprintId: many });
const installedMs = performance.now();
for (let i = 0; i < SCHEMAS; i += 10) {
  const types = EVENT_NAMES.slice(i, i + 10);
  const events = types.map((type) => ({ type, ...BY_HEADERS, schema: eventSchema(type) }));
  await blueprint(`schemas${i}`, [channel("checked", events)]);
}
const compiledMs = performance.now();
const { requests, failures } = await loading;
gateway.kill("SIGUSR2");
await delay(500);

const { wallMs, cpuMs } = JSON.parse(await readFile(stalls, "utf8")) as {
  readonly wallMs: number;
  readonly cpuMs: number;
};
console.log(
  `200 channels in ${(installedMs - startedMs).toFixed(0)} ms, 50 schemas in ${(compiledMs - installedMs).toFixed(0)} ms, meanwhile ${requests} deliveries, ${failures} rejected`,
);
console.log(
  `longest stall: ${wallMs.toFixed(1)} ms wall time, ${cpuMs.toFixed(1)} ms CPU time (goal ${GOAL_MS})`,
);
if (cpuMs > GOAL_MS) {
  console.log(`MISSED by ${(cpuMs - GOAL_MS).toFixed(1)} ms`);
  process.exitCode = 1;
}

function channel(uid: string, events: readonly object[]): object {
  return { uid, kind: "webhook", title: uid, config: {}, events };
}

async function blueprint(uid: string, channels: readonly object[]): Promise<string> {
  const { id } = await gateway.api<{ id: string }>("POST", "/blueprints", { uid, title: uid, channels });
  return id;
}

async function load(seconds: number): Promise<LoadResult> {
  const plan: LoadPlan = {
    host: "127.0.0.1",
    port: Number(new URL(gateway.origin).port),
    path: url.pathname,
    headers: { "content-type": "application/json", "x-github-event": "push" },
    body: JSON.stringify({ ref: "refs/heads/main", filler: "x".repeat(420) }),
    idHeader: "x-github-delivery",
    connections: 16,
    seconds,
  };
  const { stdout } = await run(process.execPath, [here("load.ts"), JSON.stringify(plan)]);
  return JSON.parse(stdout) as LoadResult;
}
