import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CONFIG_OPTION, invalidSettings, type MachineOptions, runOnStores } from "../machine.ts";

export function define(command: Command, context: CommandContext): void {
  command.option(...CONFIG_OPTION).action(({ config: configFile }: MachineOptions) =>
    runOnStores(
      context,
      configFile,
      "The master key rotation is not complete; run it again",
      async (config, given) => {
        if (config.masterKey && !config.newMasterKey) {
          const message = "is required to rotate the master key when INLET_MASTER_KEY is set";
          throw invalidSettings([{ path: "INLET_NEW_MASTER_KEY", message }]);
        }
        return (await import("../../rotate-master-key.ts")).rotate(config, given);
      },
    ),
  );
  examples(command, [
    ["inlet rotate-master-key", "create a new key in the data directory"],
    ["INLET_NEW_MASTER_KEY=$(openssl rand -base64 32) inlet rotate-master-key", "use your own key"],
  ]).addHelpText("after", "\nRun it on the gateway's machine, with the gateway's settings.");
}
