import type { Command } from "commander";
import type { RedriveResult } from "../../../resources/events/quarantine/schema.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { REDRIVE_COLUMNS } from "./redrive.ts";

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("<channel>", "uid or id of a polling channel with `reconciles`")
    .argument("[item...]", "ids of listed items; by default the oldest 200")
    .action(
      createAction<[string, readonly string[]]>(context, async ({ api, output, appPath }, [channel, ids]) => {
        const path = await appPath("channels", channel, "source", "recover");
        const results = await api.post<readonly RedriveResult[]>(path, ids.length > 0 ? { ids } : {});
        output.list(results, REDRIVE_COLUMNS, "The source lists no items.");
        return results.every(({ status }) => status === "released") ? EXIT.done : EXIT.failed;
      }),
    );
  examples(command, [
    ["inlet recover missed", "publish all listed items of a source"],
    ["inlet recover missed qr_1 qr_2", "two of them"],
  ]).addHelpText("after", "\nExits with 1 if any item is not published.");
}
