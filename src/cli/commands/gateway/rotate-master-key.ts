import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, runOnMachine } from "../machine.ts";

export function define(command: Command, context: CommandContext): void {
  command
    .option(...CONFIG_OPTION)
    .action(({ config }: { readonly config?: string }) =>
      runOnMachine(context, ["--rotate-master-key"], config),
    );
  examples(command, [
    ["inlet rotate-master-key", "create a new key in the data directory"],
    ["INLET_NEW_MASTER_KEY=$(openssl rand -base64 32) inlet rotate-master-key", "use your own key"],
  ]).addHelpText("after", "\nRun it on the gateway's machine, with the gateway's settings.");
}
