/**
 * Compares receivers in alternating rounds, so that other load on the machine affects all of them. The measure is CPU time per request,
 * of the receiver and of Redis separately, because it varies less with other load than requests per second do.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { cpuSecondsOf, median, sumCpuSeconds } from "./cpu.ts";
import type { LoadPlan, LoadResult } from "./load.ts";

/** Number of warm-up requests. Node optimizes hot code during the first tens of thousands of requests. */
const WARM_REQUESTS = 60_000;
const WARM_SECONDS = 4;
const WARM_TIMES = 4;
export const CONNECTIONS = 64;
export const ID_HEADER = "x-github-delivery";

export interface Target {
  readonly name: string;
  /** Processes whose CPU times are summed. */
  readonly pids: readonly number[];
  readonly port: number;
  readonly path: string;
}

export interface Figures extends LoadResult {
  readonly rate: number;
  readonly cpuMicros: number;
  readonly redisMicros: number;
}

export type Plan = Omit<LoadPlan, "port" | "path" | "seconds">;
export type Case = readonly [Target, Plan];

export interface RoundSettings {
  readonly rounds: number;
  readonly seconds: number;
  readonly redisPid: number;
}

const here = (name: string): string => join(import.meta.dirname, name);
const run = promisify(execFile);

/** Warms the cases up unless the rounds are short, measures them in alternating rounds, and returns the rounds of each case. */
export async function alternate(
  { rounds, seconds, redisPid }: RoundSettings,
  cases: readonly Case[],
): Promise<readonly (readonly Figures[])[]> {
  for (const [target, plan] of cases) {
    let requests = 0;
    for (let times = 0; times < WARM_TIMES && requests < WARM_REQUESTS && seconds > 1; times++) {
      requests += (await measure(target, { ...plan, seconds: WARM_SECONDS }, redisPid)).requests;
    }
  }
  const all = cases.map((): Figures[] => []);
  for (let round = 0; round < rounds; round++) {
    const order = [...cases.entries()];
    // Every other round is in reverse order, so that other load that grows or shrinks affects all cases alike.
    for (const [i, [target, plan]] of round % 2 === 0 ? order : order.reverse()) {
      all[i]?.push(await measure(target, { ...plan, seconds }, redisPid));
    }
  }
  return all;
}

/** Sends load to a target and returns the figures. Throws if requests fail. */
export async function measure(
  { name, pids, port, path }: Target,
  plan: Omit<LoadPlan, "port" | "path">,
  redisPid: number,
): Promise<Figures> {
  const cpuBefore = await sumCpuSeconds(pids);
  const redisBefore = await cpuSecondsOf(redisPid);
  const whole: LoadPlan = { ...plan, port, path };
  const { stdout } = await run(process.execPath, [here("load.ts"), JSON.stringify(whole)]);
  const cpuSeconds = (await sumCpuSeconds(pids)) - cpuBefore;
  const redisSeconds = (await cpuSecondsOf(redisPid)) - redisBefore;
  const result = JSON.parse(stdout) as LoadResult;
  // A rate-limited channel still accepts a few requests, which count as failures here.
  if (result.failures > (plan.status === 429 ? Math.max(5, result.requests / 1_000) : 0))
    throw new Error(`${name}: ${result.failures} of ${result.requests} requests failed`);
  return {
    ...result,
    rate: result.requests / result.seconds,
    cpuMicros: (cpuSeconds * 1e6) / result.requests,
    redisMicros: (redisSeconds * 1e6) / result.requests,
  };
}

export function print(name: string, rounds: readonly Figures[]): void {
  const spread = (key: keyof Figures, digits: number): string => {
    const all = rounds.map((figures) => figures[key]);
    const [least, most] = [Math.min(...all), Math.max(...all)].map((value) => value.toFixed(digits));
    return `${medianOf(rounds, key).toFixed(digits)} (${least}–${most})`;
  };
  process.stdout.write(
    `  ${name.padEnd(16)} ${spread("rate", 0)} req/s  p50 ${spread("p50Ms", 1)} ms  p99 ${spread("p99Ms", 1)} ms  CPU ${spread("cpuMicros", 1)} µs  Redis ${spread("redisMicros", 1)} µs\n`,
  );
}

export function medianOf(rounds: readonly Figures[], key: keyof Figures): number {
  return median(rounds.map((figures) => figures[key]));
}

/** Compares ratios with their goals. Missed goals are printed at the end and fail the run. */
export function createGoals() {
  const missed: string[] = [];
  return {
    check(what: string, ratio: number, goal?: number, kind: "least" | "most" = "least"): void {
      process.stdout.write(
        `  ${what} ${ratio.toFixed(2)}${goal === undefined ? "" : ` (goal: at ${kind} ${goal})`}\n`,
      );
      if (goal === undefined || (kind === "least" ? ratio >= goal : ratio <= goal)) return;
      const percent = (Math.abs(1 - ratio / goal) * 100).toFixed(0);
      missed.push(`${what}: ${ratio.toFixed(2)}, goal ${goal}: by ${percent} %`);
    },
    tell(): void {
      for (const line of missed) process.stdout.write(`MISSED ${line}\n`);
      if (missed.length > 0) process.exitCode = 1;
    },
  };
}

export function planOf(body: string): Plan {
  return {
    headers: { "content-type": "application/json", "x-github-event": "push" },
    body,
    idHeader: ID_HEADER,
    connections: CONNECTIONS,
  };
}

/** Starts one of this folder's programs, which prints its port. */
export async function startServer(
  stack: AsyncDisposableStack,
  name: string,
  file: string,
  ...args: readonly string[]
): Promise<Target> {
  const child = spawn(process.execPath, [here(file), ...args], { stdio: ["ignore", "pipe", "inherit"] });
  stack.defer(() => void child.kill());
  const port = await Promise.race([
    once(child.stdout, "data").then(([data]) => Number(data)),
    once(child, "exit").then(() => Number.NaN),
  ]);
  if (Number.isNaN(port)) throw new Error(`${name} ended before it listened`);
  return { name, pids: [child.pid ?? 0], port, path: "/" };
}

/** Returns a real push payload as valid JSON, truncated or padded to about the given size. */
export async function bodyOf(bytes: number, first: object = {}): Promise<string> {
  const examples = JSON.parse(
    await readFile(here("../../node_modules/@octokit/webhooks-examples/api.github.com/index.json"), "utf8"),
  ) as readonly { readonly name: string; readonly examples: readonly Record<string, unknown>[] }[];
  const push = examples.find(({ name }) => name === "push")?.examples[0] ?? {};
  const kept: Record<string, unknown> = { ...first };
  for (const [name, value] of Object.entries(push)) {
    if (Buffer.byteLength(JSON.stringify({ ...kept, [name]: value })) <= bytes - 20) kept[name] = value;
  }
  const missing = bytes - Buffer.byteLength(JSON.stringify({ ...kept, filler: "" }));
  return JSON.stringify({ ...kept, filler: "x".repeat(Math.max(0, missing)) });
}
