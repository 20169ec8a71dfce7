import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, runOnMachine } from "../machine.ts";

/** Brings the database to a declared set-up. */
export function define(command: Command, context: CommandContext): void {
  command
    .requiredOption("-f, --file <file>", "the declared set-up, as JSON")
    .option(...CONFIG_OPTION)
    .action(({ file, config }: { readonly file: string; readonly config?: string }) =>
      runOnMachine(context, ["--apply", file], config),
    );
  examples(command, [
    ["inlet apply -f config/example.setup.json", "nothing is ever deleted by it"],
    ["inlet apply -f set-up.json --config inlet.env", "with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nIt runs on the gateway's machine, with its settings. Secrets in the file name variables of the environment.",
  );
}
