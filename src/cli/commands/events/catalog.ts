import type { Command } from "commander";
import { parseExactly } from "../../../event/exact-json.ts";
import type { CatalogEntry } from "../../../resources/events/catalog/schema.ts";
import { formatPath } from "../../client/api.ts";
import { getNamedApp } from "../../client/app.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<CatalogEntry>[] = [
  { title: "channel", value: ({ channelUid }) => channelUid, whole: true },
  { title: "type", value: ({ type }) => type, colors: { "*": "cyan" } },
  { title: "schema", value: ({ schema }) => (schema === null ? "no" : "yes") },
  { title: "agents", value: ({ agents }) => (agents ? "yes" : "no") },
  {
    title: "last day",
    value: ({ eventsLastDay, eventsLastDayIsExact }) => `${eventsLastDay}${eventsLastDayIsExact ? "" : "+"}`,
  },
  { title: "last seen", value: ({ lastSeenAt }) => lastSeenAt },
];

const PAGE = 200;

export interface ChannelOption {
  readonly channel?: string;
}

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("[app]", "id or uid of the app, like --app")
    .option("--channel <channel>", "only event types of this channel")
    .action(
      createAction<[string | undefined], ChannelOption>(context, async (client, [named], { channel }) => {
        const { id } = await getNamedApp(client, named);
        const entries: CatalogEntry[] = [];
        for (;;) {
          const query = { channel, limit: PAGE, offset: entries.length };
          const text = await client.api.text(formatPath("apps", id, "catalog"), query);
          const page = parseExactly(text) as readonly CatalogEntry[];
          if (page.length === 0) break;
          entries.push(...page);
        }
        client.output.list(entries, COLUMNS, "The app has no event types.");
      }),
    );
  examples(command, [
    ["inlet catalog", "the event types of the only app"],
    ["inlet catalog shop --channel orders -o json", "schemas and examples of a channel, as JSON lines"],
  ]);
}
