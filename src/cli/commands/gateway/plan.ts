import type { Command } from "commander";
import { examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { defineSetUp } from "./apply.ts";

export function define(command: Command, context: CommandContext): void {
  defineSetUp(command, context, true);
  examples(command, [
    ["inlet plan -f config/examples/github.setup.json", "exits with 0 without changes, with 2 otherwise"],
    ["inlet plan -f set-up.json --config inlet.env || exit", "in a script, with a gateway's settings"],
  ]).addHelpText(
    "after",
    "\nRun it on the gateway's machine, with the gateway's settings. Exits with 1 if the file or a setting is invalid.",
  );
}
