import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { runOnMachine } from "../machine.ts";

export async function define(command: Command, context: CommandContext): Promise<void> {
  const { renderSettings } = await import("../../help.ts");
  command
    .option("--config <file>", "settings file with NAME=value lines; environment variables take precedence")
    .action(({ config }: { readonly config?: string }) => runOnMachine(context, [], config));
  examples(command, [
    ["inlet start", "with embedded PostgreSQL and Redis in ./data"],
    ["INLET_PORT=9000 inlet start --config inlet.env", "with settings from a file"],
  ]).addHelpText("after", () => `\nSettings, with their defaults:\n\n${renderSettings()}`);
}
