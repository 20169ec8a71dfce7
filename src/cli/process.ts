import type { Config } from "../config/schema.ts";
import type { Print } from "../gateway/greeting.ts";
import { DataDirInUseError } from "../gateway/stores.ts";
import { createLog, type Log } from "../log.ts";
import { EXIT } from "./exit.ts";

/** Signals that stop the process, with their numbers. Closing the terminal sends SIGHUP. */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
const SAME_SIGNAL_MS = 500;

/** Writes text to standard output, and resolves when the text has been written. */
export const print = (text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });

/** Opens a log that writes readable lines to a terminal, and JSON to any other output. */
export async function openLog(
  { logLevel: level }: Pick<Config, "logLevel">,
  stream: NodeJS.WriteStream,
): Promise<Log> {
  if (stream.isTTY) {
    const { createTerminalStream } = await import("./terminal-log.ts");
    return createLog({ level, destination: createTerminalStream(stream) });
  }
  return stream === process.stdout ? createLog({ level }) : createLog({ level, destination: stream });
}

/** Prints an error and its causes to standard error, even if the log level would hide errors. */
export function complain(beginning: string, error: unknown): void {
  const causes: string[] = [];
  for (let one = error; one !== undefined && one !== null; one = (one as { cause?: unknown }).cause) {
    causes.push(textOf(one));
  }
  process.stderr.write(`${beginning}: ${causes.join(": ")}\n`);
}

/**
 * Returns an error's message. An `AggregateError` of several connection attempts has no message, so the messages of its errors are
 * joined.
 */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(textOf).join(", ");
  return error instanceof Error ? error.message : String(error);
}

/**
 * Returns a signal that aborts at the first stop signal; a second one exits immediately. A repeat within 0.5 s is ignored, because
 * npm forwards a Ctrl-C that the process has already received.
 */
export function stopOnSignals(log: Log): AbortSignal {
  const stopping = new AbortController();
  let firstAtMs = 0;
  for (const [signal, number] of Object.entries(SIGNALS)) {
    process.on(signal, () => {
      if (stopping.signal.aborted) {
        if (performance.now() - firstAtMs > SAME_SIGNAL_MS) process.exit(128 + number);
        return;
      }
      firstAtMs = performance.now();
      log.info({ event: "gateway.stopping", signal }, "stopping");
      stopping.abort(new Error(`stopped by ${signal}`));
    });
  }
  return stopping.signal;
}

/**
 * Arguments of a command that runs on the gateway's machine. `print` writes results to standard output, and `log` writes to
 * standard error.
 */
export interface CommandRun {
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly print: Print;
}

/**
 * Runs a command until it ends or a stop signal aborts it, and returns the exit code. Prints errors.
 *
 * @param failure beginning of the error message, such as `No API key was created`
 */
export async function runToExit(
  config: Pick<Config, "logLevel">,
  failure: string,
  run: (given: CommandRun) => Promise<number>,
): Promise<number> {
  const log = await openLog(config, process.stderr);
  const signal = stopOnSignals(log);
  try {
    return await run({ log, signal, print });
  } catch (error) {
    if (signal.aborted) return EXIT.failed;
    complain(failure, error);
    if (error instanceof DataDirInUseError) return EXIT.dataDirInUse;
    log.fatal({ event: "gateway.failed", err: error }, "command failed");
    return EXIT.failed;
  }
}
