import { setTimeout as delay } from "node:timers/promises";
import type { Config } from "../config/schema.ts";
import { DataDirInUseError } from "../gateway/stores.ts";
import { untilAborted } from "../lib/wait.ts";
import { FirstProcessError, supervise } from "../supervisor/supervise.ts";
import { drainDelayMs } from "./drain-delay.ts";
import { EXIT, type ExitCode } from "./exit.ts";
import { openLog, printStartFailure } from "./process.ts";
import type { StartOptions } from "./start-options.ts";
import { stopOnSignals } from "./stop-signals.ts";

/** Value of the log field `process` in the lines of the supervisor. */
const SUPERVISOR = 0;

/** Runs several gateway processes until a stop signal arrives, and returns the exit code. */
export async function startSupervisor(
  config: Config,
  { configFile, env, program }: Pick<StartOptions, "configFile" | "env" | "program">,
): Promise<ExitCode> {
  const log = (await openLog(config, process.stdout)).child({ process: SUPERVISOR });
  const signal = stopOnSignals((name) => log.info({ event: "gateway.stopping", signal: name }, "stopping"));
  try {
    await using _ = await supervise(config, {
      log,
      signal,
      program,
      args: configFile === undefined ? [] : ["--config", configFile],
      write: await createWriter(),
      beforeClosing: () => delay(drainDelayMs(config)),
    });
    await untilAborted(signal);
  } catch (error) {
    if (signal.aborted) {
      if (error !== signal.reason)
        log.warn({ event: "gateway.stopped", err: error }, "stopped with an error");
      return EXIT.done;
    }
    if (error instanceof FirstProcessError) return EXIT.failed;
    printStartFailure(error, env);
    if (error instanceof DataDirInUseError) return EXIT.dataDirInUse;
    log.fatal({ event: "gateway.failed", err: error }, "gateway failed");
    return EXIT.failed;
  }
  log.info({ event: "gateway.stopped" }, "stopped");
  return EXIT.done;
}

/** Returns a function that writes lines of the processes. On a terminal, it formats their log lines. */
async function createWriter(): Promise<(lines: string) => void> {
  const { stdout } = process;
  if (!stdout.isTTY) return (lines) => void stdout.write(lines);
  const { createTerminalStream } = await import("./terminal-log.ts");
  const terminal = createTerminalStream(stdout);
  return (lines) => {
    for (const line of lines.split(/(?<=\n)/))
      if (line.startsWith('{"')) terminal.write(line);
      else stdout.write(line);
  };
}
