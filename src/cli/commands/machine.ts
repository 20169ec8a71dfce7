import type { Config } from "../../config/schema.ts";
import type { Finding } from "../../lib/errors.ts";
import type { CommandContext } from "../command-context.ts";
import { CommandError, EXIT, type ExitCode } from "../exit.ts";

export const CONFIG_OPTION = [
  "--config <file>",
  "settings file with NAME=value lines; environment variables take precedence",
] as const;

/** Options of a command on the gateway's machine. */
export interface MachineOptions {
  readonly config?: string;
}

interface Failure {
  /** First sentence of the message about invalid settings. */
  readonly message?: string;
  readonly exitCode?: ExitCode;
}

/** Loads the gateway's configuration, runs a command on the gateway's machine, and sets the exit code. */
export async function runWithConfig(
  context: CommandContext,
  file: string | undefined,
  run: (config: Config) => Promise<number>,
  failure: Failure = {},
): Promise<void> {
  const { loadConfig } = await import("../../config/load.ts");
  const loaded = loadConfig(context.io.env, file);
  if (!loaded.ok) throw invalidSettings(loaded.error, failure);
  context.exitCode = (await run(loaded.value)) as ExitCode;
}

export function invalidSettings(findings: readonly Finding[], failure: Failure = {}): CommandError {
  const { message = "These settings are invalid.", exitCode = EXIT.wrongSettings } = failure;
  const lines = findings.map((finding) => `  ${finding.path}: ${finding.message}`);
  return new CommandError([message, ...lines].join("\n"), { exitCode });
}
