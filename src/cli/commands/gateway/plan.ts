import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, runOnMachine } from "../machine.ts";

export function define(command: Command, context: CommandContext): void {
  command
    .requiredOption("-f, --file <file>", "declarative configuration (JSON)")
    .option(...CONFIG_OPTION)
    .action(({ file, config }: { readonly file: string; readonly config?: string }) =>
      runOnMachine(context, ["--apply", file, "--plan"], config, { tellsDifference: true }),
    );
  examples(command, [
    ["inlet plan -f config/example.setup.json", "exits with 0 without changes, with 2 otherwise"],
    ["inlet plan -f set-up.json --config inlet.env || exit", "in a script, with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nRun it on the gateway's machine, with the gateway's settings. Exits with 1 if the file or a setting is invalid.",
  );
}
