import type { ExitCode } from "./exit.ts";
import { runProgram } from "./program.ts";

/** Runs a command in this process: the first signal ends it, the second cuts it off. */
export async function runCommand(argv: readonly string[]): Promise<ExitCode> {
  const { stdout, stderr, stdin, env } = process;
  // The gateway has its own way to stop.
  if (GATEWAYS.has(argv[0] ?? "")) return runProgram(argv, { stdout, stderr, stdin, env, signal: NEVER });
  const stopping = new AbortController();
  let signals = 0;
  for (const [signal, number] of SIGNALS) {
    process.on(signal, () => {
      if (++signals > 1) process.exit(128 + number);
      stopping.abort(new Error(`stopped by ${signal}`));
    });
  }
  // `inlet tail | head`: nobody reads any more.
  stdout.on("error", () => stopping.abort(new Error("nobody reads the output")));
  return runProgram(argv, { stdout, stderr, stdin, env, signal: stopping.signal });
}

const GATEWAYS: ReadonlySet<string> = new Set([
  "start",
  "plan",
  "apply",
  "rotate-master-key",
  "seal-addresses",
]);
const NEVER = new AbortController().signal;
const SIGNALS = [
  ["SIGHUP", 1],
  ["SIGINT", 2],
  ["SIGTERM", 15],
] as const;
