import type { Command } from "commander";
import { parseExactly } from "../../../event/exact-json.ts";
import { formatPath } from "../../client/api.ts";
import {
  appOptions,
  createAction,
  examples,
  formatTime,
  parseCount,
  parsePast,
} from "../../client/command.ts";
import type { ApiEvent } from "../../client/entities.ts";
import { channelOf } from "../../client/event-stream.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<ApiEvent>[] = [
  { title: "time", value: ({ time }) => time, whole: true },
  { title: "channel", value: ({ topic }) => channelOf(topic) },
  { title: "type", value: ({ type }) => type, color: () => "cyan" },
  { title: "id", value: ({ id }) => id },
  { title: "entry", value: ({ entryId }) => entryId, whole: true },
  { title: "data", value: ({ data }) => data },
];

const PAGE = 200;

export function define(command: Command, context: CommandContext): void {
  appOptions(command.command("list", { isDefault: true }))
    .description("List the events of an app, oldest first")
    .option("--type <type>", "only events of this type")
    .option("--channel <uid>", "only events of this channel")
    .option(
      "--since <when>",
      "start time: an age such as 30m, 2h or 7d, or a timestamp (default: 1h)",
      parsePast,
    )
    .option("--until <when>", "end time: an age such as 30m, 2h or 7d, or a timestamp", parsePast)
    .option("--limit <count>", "maximum number of events", parseCount(1, 10_000), 50)
    .action(
      createAction<[], ListOptions>(context, async ({ api, output, app }, _, options) => {
        const { type, channel, limit } = options;
        const from = formatTime(options.since ?? parsePast("1h"));
        const query = { type, from, to: formatTime(options.until) };
        const { id } = await app();
        const found: ApiEvent[] = [];
        for (let offset = 0; found.length < limit && offset < 10_000; ) {
          const page = parseExactly(
            await api.text(formatPath("apps", id, "events"), { ...query, limit: PAGE, offset }),
          ) as readonly ApiEvent[];
          if (page.length === 0) break;
          offset += page.length;
          found.push(...page.filter(({ topic }) => channel === undefined || channelOf(topic) === channel));
        }
        output.list(found.slice(0, limit), COLUMNS, "No events found.");
      }),
    );
  appOptions(command.command("get <topic> <entry>"))
    .description("Show an event by its topic and entry id")
    .action(
      createAction<[string, string]>(context, async ({ api, output, app }, [topic, entry]) => {
        output.one(
          parseExactly(
            await api.text(formatPath("apps", (await app()).id, "events", topic, entry)),
          ) as object,
        );
      }),
    );
  examples(command, [
    ["inlet events --since 2h --type push", "events of the last two hours"],
    ["inlet events --channel inbox --limit 5 -o json", "print JSON lines, with numbers exactly as received"],
  ]);
}

interface ListOptions {
  readonly type?: string;
  readonly channel?: string;
  readonly since?: number;
  readonly until?: number;
  readonly limit: number;
}
