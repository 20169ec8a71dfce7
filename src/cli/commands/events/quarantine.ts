import { type Command, Option } from "commander";
import { QUARANTINE_REASONS } from "../../../event/outcome.ts";
import { formatPath } from "../../client/api.ts";
import {
  appOptions,
  createAction,
  examples,
  formatTime,
  parseCount,
  parsePast,
} from "../../client/command.ts";
import type { QuarantineRecord } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<QuarantineRecord>[] = [
  { title: "id", value: ({ id }) => id, whole: true },
  { title: "last", value: ({ lastAt }) => lastAt },
  { title: "channel", value: ({ channelUid }) => channelUid },
  { title: "reason", value: ({ reason }) => reason, color: () => "yellow" },
  { title: "times", value: ({ count }) => count },
  { title: "path", value: ({ path }) => path },
  { title: "detail", value: ({ detail }) => detail },
];

export interface QuarantineFilters {
  readonly channel?: string;
  readonly reason?: string;
  readonly since?: number;
  readonly until?: number;
}

/** The filters of what is in quarantine. */
export const filterOptions = (command: Command): Command =>
  command
    .option("--channel <channel>", "items of this channel alone, by its uid or id")
    .addOption(
      new Option("--reason <reason>", "items kept for this reason alone").choices(QUARANTINE_REASONS),
    )
    .option("--since <when>", "that came first since then: 30m, 2h, 7d, or a time", parsePast)
    .option("--until <when>", "that came first before then", parsePast);

/** As the API takes them. */
export const filterQuery = ({ channel, reason, since, until }: QuarantineFilters) => ({
  ...(channel === undefined ? {} : { channelId: channel }),
  ...(reason === undefined ? {} : { reason }),
  ...(since === undefined ? {} : { from: formatTime(since) ?? "" }),
  ...(until === undefined ? {} : { to: formatTime(until) ?? "" }),
});

/** Items that could not become events. */
export function define(command: Command, context: CommandContext): void {
  filterOptions(appOptions(command.command("list", { isDefault: true })))
    .description("List what is in quarantine")
    .option("--limit <count>", "at most so many", parseCount(1, 10_000), 50)
    .action(
      createAction<[], QuarantineFilters & { readonly limit: number }>(
        context,
        async (client, _, options) => {
          const { api, output, app } = client;
          const path = formatPath("apps", (await app()).id, "quarantine");
          const { items, total } = await api.list<QuarantineRecord>(
            path,
            filterQuery(options),
            options.limit,
          );
          output.list(items, COLUMNS, "Nothing is in quarantine.");
          if (total > items.length) output.note(`${items.length} of ${total}.`);
        },
      ),
    );
  appOptions(command.command("get <item>"))
    .description("Show an item with its delivery, whole, and what it would become today")
    .action(
      createAction<[string]>(context, async ({ api, output, app }, [id]) => {
        output.one(await api.get(formatPath("apps", (await app()).id, "quarantine", id)));
      }),
    );
  appOptions(command.command("delete <item...>"))
    .description("Delete items")
    .action(
      createAction<[readonly string[]]>(context, async ({ api, output, app }, [ids]) => {
        const { id } = await app();
        for (const item of ids) output.one(await api.delete(formatPath("apps", id, "quarantine", item)));
      }),
    );
  examples(command, [
    ["inlet quarantine --reason schema_mismatch", "why deliveries did not become events"],
    ["inlet quarantine get qr_1", "the delivery itself; the audit says who has looked"],
  ]);
}
