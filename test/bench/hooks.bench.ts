/**
 * The hook endpoint against the floor (`floor.ts`), alternating in one run, on one Redis with `appendfsync always`, 64
 * connections, the generator in its own process. Prints the median of the rounds and the ratio; fails below the goal.
 *
 * usage: npm run bench
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { startGatewayProcess } from "../support/gateway-process.ts";
import type { LoadPlan, LoadResult } from "./load.ts";
import { startBenchRedis } from "./redis.ts";

const ROUNDS = 5;
const SECONDS = 4;
const CONNECTIONS = 64;
const GOAL = 0.6;
const ID_HEADER = "x-github-delivery";
/** Of the kernel's clock in /proc, on every Linux that Node runs on. */
const TICKS_PER_SECOND = 100;

interface Figures {
  readonly requestsPerSecond: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly cpuMicros: number;
}

const here = (name: string): string => join(import.meta.dirname, name);
const run = promisify(execFile);
await using redis = await startBenchRedis();
const { dir, socket } = redis;
const floor = spawn(process.execPath, [here("floor.ts"), socket], { stdio: ["ignore", "pipe", "inherit"] });
try {
  const [floorPort] = await once(floor.stdout, "data");
  await using gateway = await startGatewayProcess({
    INLET_DATA_DIR: join(dir, "data"),
    REDIS_URL: `unix://${socket}`,
    INLET_LOG_LEVEL: "warn",
  });
  const channel = await installGithub(gateway.api);
  const hook = new URL(channel.url);

  for (const body of [await bodyOf(468), await bodyOf(11_700)]) {
    const plan = {
      host: "127.0.0.1",
      headers: { "content-type": "application/json", "x-github-event": "push" },
      body,
      idHeader: ID_HEADER,
      connections: CONNECTIONS,
      seconds: SECONDS,
    };
    const targets = {
      floor: { pid: floor.pid ?? 0, plan: { ...plan, port: Number(floorPort), path: "/" } },
      inlet: {
        pid: gateway.pid,
        plan: { ...plan, port: Number(new URL(gateway.origin).port), path: hook.pathname },
      },
    };
    await measure(targets.floor.pid, { ...targets.floor.plan, seconds: 2 });
    await measure(targets.inlet.pid, { ...targets.inlet.plan, seconds: 2 });
    const floors: Figures[] = [];
    const inlets: Figures[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      floors.push(await measure(targets.floor.pid, targets.floor.plan));
      inlets.push(await measure(targets.inlet.pid, targets.inlet.plan));
    }
    report(`${Buffer.byteLength(body)} B`, floors, inlets);
  }
} finally {
  floor.kill();
}

async function installGithub(
  api: <T>(method: string, path: string, body?: unknown) => Promise<T>,
): Promise<{ readonly url: string }> {
  const blueprint = await api<{ id: string }>("POST", "/blueprints", {
    uid: "github",
    title: "GitHub",
    channels: [
      {
        uid: "hooks",
        kind: "webhook",
        title: "Webhooks",
        config: {},
        events: ["push", "issues", "pull_request"].map((type) => ({
          type,
          typePath: "$headers['x-github-event']",
          idPath: `$headers['${ID_HEADER}']`,
        })),
      },
    ],
  });
  const app = await api<{ channels: readonly { url: string }[] }>("POST", "/apps/install", {
    blueprintId: blueprint.id,
  });
  const [channel] = app.channels;
  if (channel === undefined) throw new Error("the app has no channel");
  return channel;
}

/** A real push payload, cut or filled up to about the size asked for; valid JSON. */
async function bodyOf(bytes: number): Promise<string> {
  const examples = JSON.parse(
    await readFile(here("../../node_modules/@octokit/webhooks-examples/api.github.com/index.json"), "utf8"),
  ) as readonly { readonly name: string; readonly examples: readonly Record<string, unknown>[] }[];
  const push = examples.find(({ name }) => name === "push")?.examples[0] ?? {};
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(push)) {
    if (Buffer.byteLength(JSON.stringify({ ...kept, [name]: value })) <= bytes - 20) kept[name] = value;
  }
  const missing = bytes - Buffer.byteLength(JSON.stringify({ ...kept, filler: "" }));
  return JSON.stringify({ ...kept, filler: "x".repeat(Math.max(0, missing)) });
}

async function measure(pid: number, plan: LoadPlan): Promise<Figures> {
  const cpuBefore = await cpuSecondsOf(pid);
  const { stdout } = await run(process.execPath, [here("load.ts"), JSON.stringify(plan)], {
    maxBuffer: 1 << 20,
  });
  const cpuSeconds = (await cpuSecondsOf(pid)) - cpuBefore;
  const result = JSON.parse(stdout) as LoadResult;
  if (result.failures > 0) throw new Error(`${result.failures} of ${result.requests} requests failed`);
  return {
    requestsPerSecond: result.requests / result.seconds,
    p50Ms: result.p50Ms,
    p99Ms: result.p99Ms,
    cpuMicros: (cpuSeconds * 1e6) / result.requests,
  };
}

/** User and system time of a process, from fields 14 and 15 of /proc/<pid>/stat (proc(5)). */
async function cpuSecondsOf(pid: number): Promise<number> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
}

function report(size: string, floors: readonly Figures[], inlets: readonly Figures[]): void {
  const floorMedian = medianOf(floors);
  const inletMedian = medianOf(inlets);
  const ratio = inletMedian.requestsPerSecond / floorMedian.requestsPerSecond;
  process.stdout.write(`\n${size}, ${CONNECTIONS} connections, median of ${ROUNDS}\n`);
  for (const [name, figures] of [
    ["floor", floorMedian],
    ["inlet", inletMedian],
  ] as const) {
    const { requestsPerSecond, p50Ms, p99Ms, cpuMicros } = figures;
    process.stdout.write(
      `  ${name}  ${requestsPerSecond.toFixed(0).padStart(6)} req/s  p50 ${p50Ms.toFixed(2)} ms  p99 ${p99Ms.toFixed(2)} ms  ${cpuMicros.toFixed(0)} µs CPU/request\n`,
    );
  }
  process.stdout.write(`  ratio  ${ratio.toFixed(2)} (goal ${GOAL})\n`);
  if (ratio < GOAL) process.exitCode = 1;
}

function medianOf(all: readonly Figures[]): Figures {
  const median = (pick: (figures: Figures) => number): number =>
    all.map(pick).sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
  return {
    requestsPerSecond: median((figures) => figures.requestsPerSecond),
    p50Ms: median((figures) => figures.p50Ms),
    p99Ms: median((figures) => figures.p99Ms),
    cpuMicros: median((figures) => figures.cpuMicros),
  };
}
