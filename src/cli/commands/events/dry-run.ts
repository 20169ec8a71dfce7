import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, usageError } from "../../exit.ts";
import { type ExplainedItem, showItems } from "./explain.ts";

interface DryRun {
  readonly request: { readonly method: string; readonly url: string };
  readonly response: { readonly status: number; readonly bytes: number } | null;
  readonly items: readonly ExplainedItem[];
  readonly total: number;
  readonly cursor: unknown;
  readonly end: { readonly kind: string; readonly code: string | null; readonly message?: string | null };
}

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("<channel>", "uid or id of a polling channel")
    .option("--cursor <json>", "start from this cursor instead of the current one")
    .action(
      createAction<[string], { readonly cursor?: string }>(
        context,
        async ({ api, output, app }, [channel], { cursor }) => {
          const path = formatPath("apps", (await app()).id, "channels", channel, "source", "dry-run");
          const result = await api.post<DryRun>(
            path,
            cursor === undefined ? {} : { cursor: parseCursor(cursor) },
          );
          const { request, response, items, total, end } = result;
          if (output.isJson) output.one(result);
          else {
            output.note(`${request.method} ${request.url}`);
            output.note(
              response === null
                ? "no response"
                : `${response.status}, ${response.bytes} bytes, ${total} items`,
            );
            output.note(`end: ${end.kind}${end.code === null ? "" : ` (${end.code})`}`);
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

function parseCursor(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw usageError(`${text} is not JSON.`);
  }
}
