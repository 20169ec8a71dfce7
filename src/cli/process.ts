import type { Config } from "../config/schema.ts";
import { createLog, type Log } from "../log.ts";
import type { Io } from "./io.ts";
import { adaptCommands } from "./program-name.ts";

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
    const hasQuietStart = stream === process.stdout && level === "info";
    return createLog({ level, destination: createTerminalStream(stream, { hasQuietStart }) });
  }
  return stream === process.stdout ? createLog({ level }) : createLog({ level, destination: stream });
}

/** Prints the error that ended the start of a gateway. */
export function printStartFailure(error: unknown, env: Io["env"]): void {
  process.stderr.write(`${adaptCommands(formatFailure("Inlet did not start", error), env)}\n`);
}

/** Returns the messages of an error and its causes on one line, after a beginning such as `Inlet did not start`. */
export function formatFailure(beginning: string, error: unknown): string {
  const causes: string[] = [];
  for (let one = error; one !== undefined && one !== null; one = (one as { cause?: unknown }).cause) {
    causes.push(textOf(one));
  }
  return `${beginning}: ${causes.join(": ")}`;
}

/**
 * Returns an error's message. An `AggregateError` of several connection attempts has no message, so the messages of its errors are
 * joined.
 */
function textOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === "") return error.errors.map(textOf).join(", ");
  return error instanceof Error ? error.message : String(error);
}
