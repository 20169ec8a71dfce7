import { type Command, Option } from "commander";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import type { RecordEntity } from "../../../resources/events/quarantine/schema.ts";
import { formatPath } from "../../client/api.ts";
import { showAppUids } from "../../client/app.ts";
import {
  appOptions,
  declareSubcommands,
  examples,
  fileOption,
  parseCount,
  readEntity,
} from "../../client/command.ts";
import { firstSeenOptions, formatTime } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<RecordEntity>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "last", value: ({ lastAt }) => lastAt, isOptional: true },
  { title: "app", value: ({ appId }) => appId, isOptional: true },
  { title: "channel", value: ({ channelUid }) => channelUid },
  { title: "reason", value: ({ reason }) => reason, colors: { "*": "yellow" } },
  { title: "times", value: ({ count }) => count, isOptional: true },
  { title: "path", value: ({ path }) => path, isOptional: true },
  { title: "detail", value: ({ detail }) => detail, wraps: true },
];

export interface QuarantineFilters {
  readonly channel?: string;
  readonly reason?: string;
  readonly since?: number;
  readonly until?: number;
}

export const filterOptions = (command: Command): Command =>
  firstSeenOptions(
    command
      .option("--channel <channel>", "only items of this channel (uid or id)")
      .addOption(new Option("--reason <reason>", "only items with this reason").choices(QUARANTINE_REASONS)),
  );

export const filterQuery = ({ channel, reason, since, until }: QuarantineFilters) => ({
  channelId: channel,
  reason,
  from: formatTime(since),
  to: formatTime(until),
});

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, appOptions);

  const list = part<[], QuarantineFilters & { readonly limit: number }>(
    "list",
    "List the quarantined items of an app or of all apps, newest first",
    async ({ api, output, selectedApp }, _, options) => {
      const { channelId: channel, ...filters } = filterQuery(options);
      const query = { appId: (await selectedApp())?.id, channel, ...filters };
      const { items, total } = await api.listNewest<RecordEntity>("/quarantine", query, options.limit);
      output.list(items, await showAppUids({ api, output }, items, COLUMNS), "Quarantine is empty.");
      if (total > items.length) output.note(`Showing ${items.length} of ${total}.`);
    },
  ).option("--limit <count>", "maximum number of items", parseCount(1, 10_000), 50);
  filterOptions(list);
  part<[string]>(
    "get <item>",
    "Show an item with its full delivery, and how it would be processed now",
    async ({ api, appPath }, [id]) => api.get(await appPath("quarantine", id)),
  );
  fileOption(
    part<[string], { readonly file: string }>(
      "preview <channel>",
      "Show which items of a channel would become events with the `events` in a file",
      async ({ api, app, io }, [channelId], { file }) => {
        const { id } = await app(channelId);
        const body = { ...(await readEntity(io, file)), channelId };
        return api.post(formatPath("apps", id, "quarantine", "preview"), body);
      },
    ),
  );
  part<[readonly string[]]>("delete <item...>", "Delete items", async ({ api, output, app }, [ids]) => {
    const { id } = await app();
    for (const item of ids) output.one(await api.delete(formatPath("apps", id, "quarantine", item)));
  });
  examples(command, [
    ["inlet quarantine --reason schema_mismatch", "items that failed their schema"],
    ["inlet quarantine preview hooks -f events.json", "try definitions before you save them"],
    ["inlet quarantine get qr_1", "the full delivery; the audit log records the access"],
  ]);
}
