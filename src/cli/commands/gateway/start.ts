import { type Command, Option } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, type MachineOptions, runWithConfig } from "../machine.ts";

interface StartOptions extends MachineOptions {
  /** Set by a supervisor for the processes that it starts. */
  readonly supervised?: boolean;
}

export async function define(command: Command, context: CommandContext): Promise<void> {
  const { renderSettingsHelp } = await import("../../../config/render-settings.ts");
  command
    .option(...CONFIG_OPTION)
    .addOption(new Option("--supervised").hideHelp())
    .action(({ config: configFile, supervised: isSupervised = false }: StartOptions) =>
      runWithConfig(
        context,
        configFile,
        async (config) =>
          (await import("../../start.ts")).start(config, { configFile, isSupervised, env: context.io.env }),
        { message: "Inlet did not start: these settings are invalid." },
      ),
    );
  examples(command, [
    ["inlet start", "with embedded PostgreSQL and Redis in ./data"],
    ["INLET_PORT=9000 inlet start --config inlet.env", "with settings from a file"],
  ]).addHelpText("after", () => `\nSettings, with their defaults:\n\n${renderSettingsHelp()}`);
}
