import type { Command } from "commander";
import { parseExactly } from "../../../event/exact-json.ts";
import {
  appOptions,
  declareSubcommands,
  examples,
  formatTime,
  parseCount,
  parsePast,
  timeOptions,
} from "../../client/command.ts";
import type { ApiEvent } from "../../client/entities.ts";
import { channelOf } from "../../client/event-stream.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<ApiEvent>[] = [
  { title: "time", value: ({ time }) => time },
  { title: "channel", value: ({ topic }) => channelOf(topic) },
  { title: "type", value: ({ type }) => type, colors: { "*": "cyan" } },
  { title: "id", value: ({ id }) => id, isOptional: true },
  { title: "entry", value: ({ entryId }) => entryId },
  { title: "data", value: ({ data }) => data, isPreview: true },
];

const PAGE = 200;
/** Largest offset that the API accepts in a range of times. */
const MAX_OFFSET = 10_000;

interface ListOptions {
  readonly type?: string;
  readonly channel?: string;
  readonly since?: number;
  readonly until?: number;
  readonly limit: number;
}

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, appOptions);

  const list = part<[], ListOptions>(
    "list",
    "List the events of an app, oldest first",
    async ({ api, output, appPath }, _, { type, channel, limit, since = parsePast("1h"), until }) => {
      const path = await appPath("events");
      const query = { type, from: formatTime(since), to: formatTime(until), limit: PAGE };
      const found: ApiEvent[] = [];
      for (let offset = 0; found.length < limit && offset < MAX_OFFSET; ) {
        const page = parseExactly(await api.text(path, { ...query, offset })) as readonly ApiEvent[];
        if (page.length === 0) break;
        offset += page.length;
        found.push(...page.filter(({ topic }) => channel === undefined || channelOf(topic) === channel));
      }
      output.list(found.slice(0, limit), COLUMNS, "No events found.");
    },
  )
    .option("--type <type>", "only events of this type")
    .option("--channel <uid>", "only events of this channel")
    .option("--limit <count>", "maximum number of events", parseCount(1, 10_000), 50);
  timeOptions(list, " (default: 1h)");
  part<[string, string]>(
    "get <topic> <entry>",
    "Show an event by its topic and entry id",
    async ({ api, appPath }, [topic, entry]) =>
      parseExactly(await api.text(await appPath("events", topic, entry))) as ApiEvent,
  );
  examples(command, [
    ["inlet events --since 2h --type push", "events of the last two hours"],
    ["inlet events --channel inbox --limit 5 -o json", "print JSON lines, with numbers exactly as received"],
  ]);
}
