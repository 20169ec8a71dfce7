/**
 * Measures the longest stall of a gateway's event loop. Load it before the gateway with `--import`. It starts and stops on SIGUSR2, and
 * then writes the result to the file named by STALLS_FILE.
 */
import { writeFileSync } from "node:fs";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";

const file = process.env.STALLS_FILE;
if (isMainThread && file !== undefined) {
  process.once("SIGUSR2", () => {
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    let cpuMs = 0;
    let last = process.threadCpuUsage();
    const sampler = setInterval(() => {
      const now = process.threadCpuUsage();
      cpuMs = Math.max(cpuMs, (now.user + now.system - last.user - last.system) / 1_000);
      last = now;
    }, 1);
    process.once("SIGUSR2", () => {
      clearInterval(sampler);
      delay.disable();
      writeFileSync(file, JSON.stringify({ wallMs: delay.max / 1e6, cpuMs }));
    });
  });
}
