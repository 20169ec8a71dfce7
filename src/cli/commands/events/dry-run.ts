import type { Command } from "commander";
import type { DryRunEntity } from "../../../resources/apps/sources/schema.ts";
import { appOptions, createAction, examples, parseJson } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import { showItems } from "./explain.ts";

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("<channel>", "uid or id of a polling channel")
    .option("--cursor <json>", "start from this cursor instead of the current one")
    .action(
      createAction<[string], { readonly cursor?: string }>(
        context,
        async ({ api, output, appPath }, [channel], { cursor }) => {
          const result = await api.post<DryRunEntity>(
            await appPath("channels", channel, "source", "dry-run"),
            cursor === undefined ? {} : { cursor: parseJson(cursor) },
          );
          const { request, response, items, known, total, end } = result;
          if (output.isJson) output.one(result);
          else {
            output.note(`${request.method} ${request.url}`);
            output.note(
              response === null
                ? "no response"
                : `${response.status}, ${response.bytes} bytes, ${total} new and ${known} known items`,
            );
            const code = end.code === null ? "" : ` (${end.code})`;
            output.note(`end: ${end.kind}${code}${end.message === null ? "" : `: ${end.message}`}`);
            output.note(`next cursor: ${JSON.stringify(result.cursor)}`);
            showItems(items, output);
          }
          return end.kind === "done" || end.kind === "finished" ? EXIT.done : EXIT.failed;
        },
      ),
    );
  examples(command, [
    ["inlet dry-run orders", "show the next poll"],
    [
      `inlet dry-run orders --cursor '{"sequence": "1"}' -o json`,
      "start from another cursor, print everything",
    ],
  ]);
}
