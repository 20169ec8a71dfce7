import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, type MachineOptions, runWithConfig } from "../machine.ts";

export async function define(command: Command, context: CommandContext): Promise<void> {
  const { renderSettingsHelp } = await import("../../../config/render-settings.ts");
  command.option(...CONFIG_OPTION).action(({ config: configFile }: MachineOptions) =>
    runWithConfig(context, configFile, async (config) => (await import("../../start.ts")).start(config), {
      message: "Inlet did not start: these settings are invalid.",
    }),
  );
  examples(command, [
    ["inlet start", "with embedded PostgreSQL and Redis in ./data"],
    ["INLET_PORT=9000 inlet start --config inlet.env", "with settings from a file"],
  ]).addHelpText("after", () => `\nSettings, with their defaults:\n\n${renderSettingsHelp()}`);
}
