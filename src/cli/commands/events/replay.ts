import type { Command } from "commander";
import type { Replay } from "../../../resources/events/subscriptions/schema.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import { formatTime, timeOptions } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { createProgress, renderBar } from "../../output/progress.ts";

interface ReplayOptions {
  readonly since?: number;
  readonly until?: number;
  readonly type?: readonly string[];
  readonly dryRun?: boolean;
}

export function define(command: Command, context: CommandContext): void {
  timeOptions(appOptions(command))
    .argument("<subscription>", "id of a subscription with a handler")
    .option("--type <type...>", "only events of these types")
    .option("--dry-run", "count the events without sending them")
    .action(
      createAction<[string], ReplayOptions>(context, async ({ api, appPath, io, output }, [id], options) => {
        const { since, until, type: types, dryRun = false } = options;
        const path = await appPath("subscriptions", id, "replay");
        const body = { from: formatTime(since), to: formatTime(until), types, dryRun };
        let page = await api.post<Replay>(path, body);
        let { replayed } = page;
        const { matched } = page;
        using progress = createProgress(io, output);
        while (page.next !== null && !dryRun) {
          progress.show(`Replaying ${renderBar(replayed, matched)} events`);
          page = await api.post<Replay>(path, { ...body, after: page.next });
          replayed += page.replayed;
        }
        return { matched, replayed };
      }),
    );
  examples(command, [
    ["inlet replay sub_1 --since 2h --dry-run", "count the matching events first"],
    ["inlet replay sub_1 --since 2h --type push", "send them"],
  ]);
}
