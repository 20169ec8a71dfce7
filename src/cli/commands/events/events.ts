import type { Command } from "commander";
import { parseExactly } from "../../../event/exact-json.ts";
import { formatPath } from "../../client/api.ts";
import { showAppUids } from "../../client/app.ts";
import { appOptions, declareSubcommands, examples, parseCount } from "../../client/command.ts";
import type { ApiEvent } from "../../client/entities.ts";
import { appOf, channelOf } from "../../client/event-stream.ts";
import { formatTime, timeOptions } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { createProgress, renderBar } from "../../output/progress.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<ApiEvent>[] = [
  { title: "time", value: ({ time }) => time },
  { title: "app", value: ({ topic }) => appOf(topic), isOptional: true },
  { title: "channel", value: ({ topic }) => channelOf(topic) },
  { title: "type", value: ({ type }) => type, colors: { "*": "cyan" } },
  { title: "id", value: ({ id }) => id, isOptional: true },
  { title: "entry", value: ({ entryId }) => entryId },
  { title: "data", value: ({ data }) => data, isPreview: true },
];

interface ListOptions {
  readonly type?: string;
  readonly channel?: string;
  readonly id?: string;
  readonly path?: string;
  readonly value?: string;
  readonly since?: number;
  readonly until?: number;
  readonly limit: number;
}

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, appOptions);

  const list = part<[], ListOptions>(
    "list",
    "List the events of an app or of all apps, newest first",
    async ({ api, io, output, selectedApp }, _, { limit, since, until, ...filters }) => {
      const { type, channel, id, path, value } = filters;
      const appId = (await selectedApp())?.id;
      const query = { appId, channel, type, id, path, value, from: formatTime(since), to: formatTime(until) };
      using progress = createProgress(io, output);
      const { items } = await api.listNewest<ApiEvent>("/events", query, limit, (scanned, total) =>
        progress.show(`Scanned ${renderBar(Math.min(scanned, total), total)} events`),
      );
      progress[Symbol.dispose]();
      output.list(items, await showAppUids({ api, output }, items, COLUMNS), "No events found.");
    },
  )
    .option("--type <type>", "only events of this type")
    .option("--channel <channel>", "only events of this channel (uid or id)")
    .option("--id <id>", "only events with this event id or entry id")
    .option("--path <path>", "only events with a value at this JSONPath of their data")
    .option("--value <value>", "only events with this value at --path")
    .option("--limit <count>", "maximum number of events", parseCount(1, 10_000), 50);
  timeOptions(list);
  part<[string, string]>(
    "get <topic> <entry>",
    "Show an event by its topic and entry id",
    async ({ api }, [topic, entry]) =>
      parseExactly(await api.text(formatPath("apps", appOf(topic), "events", topic, entry))) as ApiEvent,
  );
  examples(command, [
    ["inlet events --since 2h --type push", "newest events of all apps, of the last two hours"],
    ["inlet events --path '$.order.id' --value 4711", "search the data of all retained events"],
    ["inlet events --channel inbox --limit 5 -o json", "print JSON lines, with numbers exactly as received"],
  ]);
}
