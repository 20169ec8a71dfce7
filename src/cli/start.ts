import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/schema.ts";
import { DataDirInUseError } from "../gateway/stores.ts";
import { startGateway } from "../gateway.ts";
import { endPretenuring, releaseStartupMemory } from "../lib/heap.ts";
import { putPoolBehindOtherThreads } from "../lib/thread-priority.ts";
import { untilAborted } from "../lib/wait.ts";
import { drainDelayMs } from "./drain-delay.ts";
import { EXIT, type ExitCode } from "./exit.ts";
import { openLog, print, printStartFailure } from "./process.ts";
import type { StartOptions } from "./start-options.ts";
import { stopOnSignals } from "./stop-signals.ts";

/** Runs the gateway until a stop signal arrives, and returns the exit code. */
export async function start(config: Config, options: StartOptions): Promise<ExitCode> {
  const { isSupervised, env, timing } = options;
  if (isSupervised) return (await import("./start-supervised.ts")).startSupervised(config, options);
  if (config.processes > 1) return (await import("./start-supervisor.ts")).startSupervisor(config, options);
  endPretenuring();
  const log = await openLog(config, process.stdout);
  if (process.stdout.isTTY) await print("Starting Inlet…\n");
  const signal = stopOnSignals((name) => log.info({ event: "gateway.stopping", signal: name }, "stopping"));
  let started = false;
  try {
    const beforeClosing = () => delay(drainDelayMs(config));
    await using gateway = await startGateway(config, {
      log,
      signal,
      beforeReady: releaseStartupMemory,
      beforeClosing,
      ...timing,
    });
    started = true;
    await putPoolBehindOtherThreads();
    await gateway.greet(print);
    await untilAborted(signal);
  } catch (error) {
    if (signal.aborted) {
      if (error !== signal.reason)
        log.warn({ event: "gateway.stopped", err: error }, "stopped with an error");
      return EXIT.done;
    }
    if (!started) printStartFailure(error, env);
    if (error instanceof DataDirInUseError) return EXIT.dataDirInUse;
    log.fatal({ event: "gateway.failed", err: error }, "gateway failed");
    return EXIT.failed;
  }
  log.info({ event: "gateway.stopped" }, "stopped");
  return EXIT.done;
}
