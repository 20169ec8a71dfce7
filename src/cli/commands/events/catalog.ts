import type { Command } from "commander";
import { parseExactly } from "../../../event/exact-json.ts";
import type { CatalogEntry } from "../../../resources/events/catalog/schema.ts";
import { formatPath } from "../../client/api.ts";
import { getNamedApp } from "../../client/app.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<CatalogEntry>[] = [
  { title: "channel", value: ({ channelUid }) => channelUid },
  { title: "type", value: ({ type }) => type, colors: { "*": "cyan" } },
  { title: "schema", value: ({ schema }) => (schema === null ? "no" : "yes"), isOptional: true },
  { title: "agents", value: ({ agents }) => (agents ? "yes" : "no"), isOptional: true },
  {
    title: "last day",
    value: ({ eventsLastDay, eventsLastDayIsExact }) => `${eventsLastDay}${eventsLastDayIsExact ? "" : "+"}`,
  },
  { title: "last seen", value: ({ lastSeenAt }) => lastSeenAt, isOptional: true },
];

const PAGE = 200;

export interface ChannelOption {
  readonly channel?: string;
}

interface CatalogOptions extends ChannelOption {
  readonly agents?: boolean;
}

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("[app]", "id or uid of the app, like --app")
    .option("--channel <channel>", "only event types of this channel")
    .option("--agents", "only event types that are open to agents")
    .action(
      createAction<[string | undefined], CatalogOptions>(context, async (client, [named], options) => {
        const { id } = await getNamedApp(client, named);
        const entries: CatalogEntry[] = [];
        for (let offset = 0; ; ) {
          const query = { channel: options.channel, limit: PAGE, offset };
          const text = await client.api.text(formatPath("apps", id, "catalog"), query);
          const page = parseExactly(text) as readonly CatalogEntry[];
          if (page.length === 0) break;
          offset += page.length;
          entries.push(...page.filter(({ agents }) => agents || !options.agents));
        }
        const none = options.agents ? "No event type is open to agents." : "The app has no event types.";
        client.output.list(entries, COLUMNS, none);
      }),
    );
  examples(command, [
    ["inlet catalog", "the event types of the only app"],
    ["inlet catalog shop --channel orders -o json", "schemas and examples of a channel, as JSON lines"],
  ]);
}
