import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, runOnMachine } from "../machine.ts";

/** Puts another master key in the place of the one of now. */
export function define(command: Command, context: CommandContext): void {
  command
    .option(...CONFIG_OPTION)
    .action(({ config }: { readonly config?: string }) =>
      runOnMachine(context, ["--rotate-master-key"], config),
    );
  examples(command, [
    ["inlet rotate-master-key", "to a new key in the data directory"],
    ["INLET_NEW_MASTER_KEY=$(openssl rand -base64 32) inlet rotate-master-key", "to a key of yours"],
  ]).addHelpText("after", "\nIt runs on the gateway's machine, with its settings.");
}
