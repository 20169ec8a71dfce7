import type { Config } from "../../config/schema.ts";
import type { Print } from "../../gateway/greeting.ts";
import type { Finding } from "../../lib/errors.ts";
import type { Log } from "../../log.ts";
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
  run: (config: Config) => Promise<ExitCode>,
  failure: Failure = {},
): Promise<void> {
  const { loadConfig } = await import("../../config/load.ts");
  const loaded = loadConfig(context.io.env, file);
  if (!loaded.ok) throw invalidSettings(loaded.error, failure);
  context.exitCode = await run(loaded.value);
}

/** Arguments of a command that opens the stores. `print` resolves once the result is written, and `log` writes to standard error. */
export interface StoresRun {
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly print: Print;
}

/**
 * Like `runWithConfig`, for a command that opens the gateway's stores.
 *
 * @param beginning beginning of the message about an error, such as `No API key was created`
 */
export const runOnStores = (
  context: CommandContext,
  file: string | undefined,
  beginning: string,
  run: (config: Config, given: StoresRun) => Promise<ExitCode>,
  failure: Failure = {},
): Promise<void> =>
  runWithConfig(
    context,
    file,
    async (config) => {
      const { DataDirInUseError } = await import("../../gateway/stores.ts");
      const { formatFailure, openLog, print } = await import("../process.ts");
      const { signal } = context.io;
      const log = await openLog(config, process.stderr);
      try {
        return await run(config, { log, signal, print });
      } catch (error) {
        if (signal.aborted || error instanceof CommandError) throw error;
        const isInUse = error instanceof DataDirInUseError;
        if (!isInUse) log.fatal({ event: "gateway.failed", err: error }, "command failed");
        throw new CommandError(formatFailure(beginning, error), {
          exitCode: isInUse ? EXIT.dataDirInUse : EXIT.failed,
          cause: error,
        });
      }
    },
    failure,
  );

export function invalidSettings(findings: readonly Finding[], failure: Failure = {}): CommandError {
  const { message = "These settings are invalid.", exitCode = EXIT.wrongSettings } = failure;
  const lines = findings.map((finding) => `  ${finding.path}: ${finding.message}`);
  return new CommandError([message, ...lines].join("\n"), { exitCode });
}
