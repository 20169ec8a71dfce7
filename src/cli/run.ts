import { DEFAULT_COMMAND } from "./commands/command-list.ts";
import type { ExitCode } from "./exit.ts";
import { findCommandName, runProgram } from "./program.ts";
import { stopOnSignals } from "./stop-signals.ts";

/** Runs a command in this process. The first stop signal aborts the command, and a second signal exits immediately. */
export async function runCommand(argv: readonly string[]): Promise<ExitCode> {
  const { stdout, stderr, stdin, env } = process;
  const io = { stdout, stderr, stdin, env };
  if ((findCommandName(argv) ?? DEFAULT_COMMAND) === "start") {
    // Ignore write errors. The gateway must keep running when the reader of a pipe exits, as in `npm start | head`.
    stdout.on("error", () => {});
    // The gateway stops on signals itself, because it logs that it stops.
    return runProgram(argv, { ...io, signal: new AbortController().signal });
  }
  const closing = new AbortController();
  // Stop when the reader of the output exits, as in `inlet tail | head`.
  stdout.on("error", () => closing.abort(new Error("the output was closed")));
  return runProgram(argv, { ...io, signal: AbortSignal.any([stopOnSignals(() => {}), closing.signal]) });
}
