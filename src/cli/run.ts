import { DEFAULT_COMMAND } from "./commands/command-list.ts";
import type { ExitCode } from "./exit.ts";
import { findCommandName, runProgram } from "./program.ts";

/** Runs a command in this process. The first stop signal aborts the command, and a second signal exits immediately. */
export async function runCommand(argv: readonly string[]): Promise<ExitCode> {
  const { stdout, stderr, stdin, env } = process;
  if (OWN_SIGNALS.has(findCommandName(argv) ?? DEFAULT_COMMAND)) {
    // Ignore write errors. The gateway must keep running when the reader of a pipe exits, as in `npm start | head`.
    stdout.on("error", () => {});
    return runProgram(argv, { stdout, stderr, stdin, env, signal: NEVER });
  }
  const stopping = new AbortController();
  let signals = 0;
  for (const [signal, number] of SIGNALS) {
    process.on(signal, () => {
      if (++signals > 1) process.exit(128 + number);
      stopping.abort(new Error(`stopped by ${signal}`));
    });
  }
  // Stop when the reader of the output exits, as in `inlet tail | head`.
  stdout.on("error", () => stopping.abort(new Error("the output was closed")));
  return runProgram(argv, { stdout, stderr, stdin, env, signal: stopping.signal });
}

/** Commands that handle signals themselves. */
const OWN_SIGNALS: ReadonlySet<string> = new Set(["start", "plan", "apply", "rotate-master-key"]);
const NEVER = new AbortController().signal;
const SIGNALS = [
  ["SIGHUP", 1],
  ["SIGINT", 2],
  ["SIGTERM", 15],
] as const;
