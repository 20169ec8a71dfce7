/** How long some work holds up the event loop of this process. */
import { monitorEventLoopDelay } from "node:perf_hooks";
import { until } from "../support/until.ts";

interface Stall {
  /** The longest that the event loop did not turn, in milliseconds: what a request feels. */
  readonly wallMs: number;
  /** The most processor time that this thread took between two turns: our part of it, whatever else the machine does. */
  readonly cpuMs: number;
}

async function longestStall(work: () => unknown): Promise<Stall> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  // The histogram counts from its first tick on, and a delay with the tick that ends it.
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
    `${name.padEnd(28)} ${tookMs.toFixed(0).padStart(6)} ms, longest stall ${wallMs.toFixed(1)} ms, of this thread's own ${cpuMs.toFixed(1)} ms`,
  );
}

/** That the measure sees a stall. */
export const measureProof = (): Promise<void> =>
  measure("a stall of 80 ms, as proof", () => {
    for (const end = performance.now() + 80; performance.now() < end; );
  });
