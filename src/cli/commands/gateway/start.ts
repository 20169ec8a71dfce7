import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { runOnMachine } from "../machine.ts";

/** Runs the gateway until a signal ends it. */
export async function define(command: Command, context: CommandContext): Promise<void> {
  const { renderSettings } = await import("../../help.ts");
  command
    .option("--config <file>", "read settings from a file of NAME=value lines; the environment wins over it")
    .action(({ config }: { readonly config?: string }) => runOnMachine(context, [], config));
  examples(command, [
    ["inlet start", "with its own PostgreSQL and Redis below ./data"],
    ["INLET_PORT=9000 inlet start --config inlet.env", "with settings of a file"],
  ]).addHelpText("after", () => `\nSettings, with their defaults:\n\n${renderSettings()}`);
}
