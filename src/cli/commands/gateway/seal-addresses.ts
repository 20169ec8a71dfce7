import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, runOnMachine } from "../machine.ts";

/** Keeps the addresses of channels sealed only. */
export function define(command: Command, context: CommandContext): void {
  command
    .option(...CONFIG_OPTION)
    .action(({ config }: { readonly config?: string }) =>
      runOnMachine(context, ["--seal-addresses"], config),
    );
  examples(command, [
    ["inlet seal-addresses", "once no gateway of a release from before runs"],
    ["inlet seal-addresses --config inlet.env", "with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nIt runs on the gateway's machine. From then on older programs refuse the database.",
  );
}
