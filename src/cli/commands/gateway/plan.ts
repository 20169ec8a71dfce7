import { resolve } from "node:path";
import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { CONFIG_OPTION, type MachineOptions, runWithConfig } from "../machine.ts";

export function define(command: Command, context: CommandContext): void {
  command
    .requiredOption("-f, --file <file>", "declarative configuration (JSON)")
    .option(...CONFIG_OPTION)
    .action(({ file, config: configFile }: MachineOptions & { readonly file: string }) =>
      runWithConfig(
        context,
        configFile,
        async (config) => {
          const { applySetUpFile } = await import("../../apply-set-up.ts");
          return applySetUpFile({ config, file: resolve(file), planOnly: true, env: context.io.env });
        },
        // Use the exit code for failures, because exit code 2 means that the plan contains changes.
        { exitCode: EXIT.failed },
      ),
    );
  examples(command, [
    ["inlet plan -f config/example.setup.json", "exits with 0 without changes, with 2 otherwise"],
    ["inlet plan -f set-up.json --config inlet.env || exit", "in a script, with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nRun it on the gateway's machine, with the gateway's settings. Exits with 1 if the file or a setting is invalid.",
  );
}
