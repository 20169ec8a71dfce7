import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { appOptions, createAction, examples, formatTime, parsePast } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";

interface Replay {
  readonly matched: number;
  readonly replayed: number;
  readonly next: string | null;
}

interface ReplayOptions {
  readonly since?: number;
  readonly until?: number;
  readonly type?: readonly string[];
  readonly dryRun?: boolean;
}

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("<subscription>", "id of a subscription with a handler")
    .option("--since <when>", "start time: an age such as 30m, 2h or 7d, or a timestamp", parsePast)
    .option("--until <when>", "end time: an age such as 30m, 2h or 7d, or a timestamp", parsePast)
    .option("--type <type...>", "only events of these types")
    .option("--dry-run", "count the events without sending them")
    .action(
      createAction<[string], ReplayOptions>(context, async ({ api, output, app, io }, [id], options) => {
        const { since, until, type, dryRun = false } = options;
        const path = formatPath("apps", (await app()).id, "subscriptions", id, "replay");
        const body = {
          ...(since === undefined ? {} : { from: formatTime(since) }),
          ...(until === undefined ? {} : { to: formatTime(until) }),
          ...(type === undefined ? {} : { types: type }),
          dryRun,
        };
        let page = await api.post<Replay>(path, body);
        let { replayed } = page;
        const { matched } = page;
        while (page.next !== null && !dryRun) {
          if (io.stderr.isTTY) io.stderr.write(`\r${replayed} of ${matched}`);
          page = await api.post<Replay>(path, { ...body, after: page.next });
          replayed += page.replayed;
        }
        if (io.stderr.isTTY && replayed > 0) io.stderr.write("\r");
        output.one({ matched, replayed });
      }),
    );
  examples(command, [
    ["inlet replay sub_1 --since 2h --dry-run", "count the matching events first"],
    ["inlet replay sub_1 --since 2h --type push", "send them"],
  ]);
}
