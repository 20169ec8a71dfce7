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

/** Sends past events to a handler again. */
export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("<subscription>", "one with a handler, by its id")
    .option("--since <when>", "events since then: 30m, 2h, 7d, or a time", parsePast)
    .option("--until <when>", "events before then", parsePast)
    .option("--type <type...>", "events of these types alone")
    .option("--dry-run", "count them, and send nothing")
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
    ["inlet replay sub_1 --since 2h --dry-run", "how many that would be"],
    ["inlet replay sub_1 --since 2h --type push", "send them"],
  ]);
}
