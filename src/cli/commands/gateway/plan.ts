import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, runOnMachine } from "../machine.ts";

/** Says what `apply` would do. */
export function define(command: Command, context: CommandContext): void {
  command
    .requiredOption("-f, --file <file>", "the declared set-up, as JSON")
    .option(...CONFIG_OPTION)
    .action(({ file, config }: { readonly file: string; readonly config?: string }) =>
      runOnMachine(context, ["--apply", file, "--plan"], config, { tellsDifference: true }),
    );
  examples(command, [
    ["inlet plan -f config/example.setup.json", "exit code 0: nothing would change; 2: something would"],
    ["inlet plan -f set-up.json --config inlet.env || exit", "in a script, with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nIt runs on the gateway's machine, with its settings. A wrong file or setting is exit code 1 here.",
  );
}
