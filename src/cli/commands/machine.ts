import type { Config } from "../../config.ts";
import type { CommandContext } from "../command-context.ts";
import { type ExitCode, usageError } from "../exit.ts";

/** Runs a gateway flag such as `--apply` on the gateway's machine with its settings, and sets the exit code. */
export async function runOnMachine(
  context: CommandContext,
  argv: readonly string[],
  config: string | undefined,
  options: { readonly tellsDifference?: boolean } = {},
): Promise<void> {
  const { runGatewayCommand } = await import("../gateway-commands.ts");
  const settings = config === undefined ? [] : ["--config", config];
  context.exitCode = (await runGatewayCommand(context.io.env, [...settings, ...argv], options)) as ExitCode;
}

/** Loads the gateway's settings, runs a command without a gateway flag, and sets the exit code. */
export async function runWithConfig(
  context: CommandContext,
  file: string | undefined,
  run: (config: Config) => Promise<number>,
): Promise<void> {
  const { parseConfig } = await import("../../config.ts");
  const parsed = parseConfig(context.io.env, file === undefined ? [] : ["--config", file]);
  if (!parsed.ok || parsed.value.kind !== "start") {
    const findings = parsed.ok ? [] : parsed.error;
    const lines = findings.map(({ path, message }) => `  ${path}: ${message}`);
    throw usageError(`These settings are invalid.\n${lines.join("\n")}`);
  }
  context.exitCode = (await run(parsed.value.config)) as ExitCode;
}

export const CONFIG_OPTION = [
  "--config <file>",
  "settings file with NAME=value lines; environment variables take precedence",
] as const;
