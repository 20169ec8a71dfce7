import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, type MachineOptions, runWithConfig } from "../machine.ts";

export function define(command: Command, context: CommandContext): void {
  command
    .option(...CONFIG_OPTION)
    .action(({ config: configFile }: MachineOptions) =>
      runWithConfig(context, configFile, async (config) =>
        (await import("../../seal-addresses.ts")).sealAllAddresses(config),
      ),
    );
  examples(command, [
    ["inlet seal-addresses", "once no gateway of an earlier version is running"],
    ["inlet seal-addresses --config inlet.env", "with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nRun it on the gateway's machine. Afterwards, earlier versions reject the database.",
  );
}
