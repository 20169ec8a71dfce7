import { resolve } from "node:path";
import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { CONFIG_OPTION, type MachineOptions, runOnStores } from "../machine.ts";

interface SetUpArguments extends MachineOptions {
  readonly file: string;
  readonly json?: boolean;
}

export function define(command: Command, context: CommandContext): void {
  defineSetUp(command, context, false);
  examples(command, [
    ["inlet apply -f config/examples/github.setup.json", "create and update; never delete"],
    ["inlet apply -f set-up.json --config inlet.env", "with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nRun it on the gateway's machine, with the gateway's settings. The file refers to secrets by environment variables.",
  );
}

/** Defines the arguments and the action of `inlet apply` or `inlet plan`. */
export function defineSetUp(command: Command, context: CommandContext, planOnly: boolean): void {
  command
    .requiredOption("-f, --file <file>", "declarative configuration (JSON)")
    .option(...CONFIG_OPTION)
    .option("--json", "one JSON object per step")
    .action(({ file, config: configFile, json: isJson = false }: SetUpArguments) =>
      runOnStores(
        context,
        configFile,
        "The configuration was not applied",
        async (config, given) => {
          const { runSetUp } = await import("../../apply-set-up.ts");
          return runSetUp(config, { file: resolve(file), planOnly, isJson, env: context.io.env }, given);
        },
        // A plan with invalid settings exits with 1, because 2 means that it contains changes.
        planOnly ? { exitCode: EXIT.failed } : {},
      ),
    );
}
