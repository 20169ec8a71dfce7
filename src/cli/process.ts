import type { Config } from "../config.ts";
import type { Print } from "../gateway/greeting.ts";
import { DataDirInUseError } from "../gateway/stores.ts";
import { createLog, type Log } from "../log.ts";
import { EXIT } from "./exit.ts";

/** SIGHUP: the terminal is closed. */
const SIGNALS = { SIGHUP: 1, SIGINT: 2, SIGTERM: 15 } as const;
const SAME_SIGNAL_MS = 500;

/** Writes to standard output; resolves once the text has left the process. */
export const print = (text: string): Promise<void> =>
  new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()));
  });

/** Lines for a person where one looks, JSON where a program reads. */
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

/** The message of an error, for the person who starts the program, beside the log and whatever its level. */
export function complain(beginning: string, error: unknown): void {
  const causes: string[] = [];
  for (let one = error; one !== undefined && one !== null; one = (one as { cause?: unknown }).cause) {
    causes.push(textOf(one));
  }
  process.stderr.write(`${beginning}: ${causes.join(": ")}\n`);
}

/** Of several attempts at one connection each has its own error, and the whole has none. */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(textOf).join(", ");
  return error instanceof Error ? error.message : String(error);
}

/**
 * Aborts at the first signal, which drains; the second cuts. One that follows at once is the first again: a terminal, or
 * `timeout`, sends it to the whole group, and npm in that group hands on what it got itself.
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

/** What a command of the gateway's machine is given: standard output is for what it tells, its log goes to standard error. */
export interface CommandRun {
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly print: Print;
}

/**
 * Runs a command that ends by itself, or by a signal. Answers its exit code, or that of what went wrong, which is said.
 *
 * @param failure what has not come about then: `No key is made`
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
