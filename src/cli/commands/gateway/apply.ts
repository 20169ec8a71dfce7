import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, runOnMachine } from "../machine.ts";

export function define(command: Command, context: CommandContext): void {
  command
    .requiredOption("-f, --file <file>", "declarative configuration (JSON)")
    .option(...CONFIG_OPTION)
    .action(({ file, config }: { readonly file: string; readonly config?: string }) =>
      runOnMachine(context, ["--apply", file], config),
    );
  examples(command, [
    ["inlet apply -f config/example.setup.json", "create and update; never delete"],
    ["inlet apply -f set-up.json --config inlet.env", "with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nRun it on the gateway's machine, with the gateway's settings. The file refers to secrets by environment variables.",
  );
}
