/** Measures how long some work blocks the event loop of this process. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { until } from "../support/until.ts";

interface Stall {
  /** Longest stall of the event loop in milliseconds of wall time, as noticed by a request. */
  readonly wallMs: number;
  /** Maximum CPU time of this thread between two iterations of the event loop. It excludes other load on the machine. */
  readonly cpuMs: number;
}

async function longestStall(work: () => unknown): Promise<Stall> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  // The histogram starts at its first tick, and counts a delay at the tick that ends it.
  await until(() => delay.count > 0, { everyMs: 1 });
  let cpuMs = 0;
  let last = process.threadCpuUsage();
  const sampler = setInterval(() => {
    const now = process.threadCpuUsage();
    cpuMs = Math.max(cpuMs, (now.user + now.system - last.user - last.system) / 1000);
    last = now;
  }, 1);
  await work();
  const ticks = delay.count;
  await until(() => delay.count > ticks, { everyMs: 1 });
  clearInterval(sampler);
  delay.disable();
  return { wallMs: delay.max / 1e6, cpuMs };
}

export async function measure(name: string, work: () => unknown): Promise<void> {
  const startedMs = performance.now();
  const { wallMs, cpuMs } = await longestStall(work);
  const tookMs = performance.now() - startedMs;
  console.log(
    `${name.padEnd(28)} ${tookMs.toFixed(0).padStart(6)} ms, longest stall ${wallMs.toFixed(1)} ms, ${cpuMs.toFixed(1)} ms CPU time`,
  );
}

/** Checks that the measurement detects a stall. */
export const measureProof = (): Promise<void> =>
  measure("a stall of 80 ms, as proof", () => {
    for (const end = performance.now() + 80; performance.now() < end; );
  });
