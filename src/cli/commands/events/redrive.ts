import type { Command } from "commander";
import { formatCount } from "../../../lib/quantities.ts";
import type { RedriveResult } from "../../../resources/events/quarantine/schema.ts";
import { formatPath } from "../../client/api.ts";
import { appOptions, type Client, createAction, examples, parseCount } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, type ExitCode, usageError } from "../../exit.ts";
import { createProgress, renderBar } from "../../output/progress.ts";
import type { Column } from "../../output/table.ts";
import { filterOptions, filterQuery, type QuarantineFilters } from "./quarantine.ts";

interface RedriveOptions extends QuarantineFilters {
  readonly all?: boolean;
  readonly asNewId?: boolean;
  readonly limit: number;
}

export const REDRIVE_COLUMNS: readonly Column<RedriveResult>[] = [
  { title: "item", value: ({ id }) => id },
  { title: "outcome", value: ({ status }) => status, colors: { released: "green", "*": "red" } },
  { title: "events", value: ({ events }) => events.map(({ type, id }) => `${type} ${id}`), wraps: true },
  { title: "message", value: ({ message }) => message, wraps: true },
];

export function define(command: Command, context: CommandContext): void {
  filterOptions(appOptions(command).argument("[item...]", "ids of quarantined items"))
    .option("--all", "all items that match the filters, in order of arrival")
    .option("--as-new-id", "publish items with the reason id_conflict under new ids")
    .option("--limit <count>", "maximum number of items that the filters select", parseCount(1, 200), 200)
    .action(createAction<[readonly string[]], RedriveOptions>(context, redrive));
  examples(command, [
    ["inlet redrive qr_1 qr_2", "two items, processed with the current definitions"],
    ["inlet redrive --reason no_match --channel hooks", "items of one channel that matched no definition"],
  ]).addHelpText("after", "\nExits with 1 if any item remains in quarantine.");
}

async function redrive(
  client: Client,
  [ids]: [readonly string[]],
  options: RedriveOptions,
): Promise<ExitCode> {
  const { api, io, output, app } = client;
  const filters = filterQuery(options);
  const isFiltered = options.all === true || Object.values(filters).some((filter) => filter !== undefined);
  if (ids.length > 0 === isFiltered) throw usageError("Use either item ids, or filters, or --all.");
  if (isFiltered && options.asNewId) throw usageError("--as-new-id requires item ids.");
  const path = formatPath("apps", (await app(ids[0])).id, "quarantine");
  const results: RedriveResult[] = [];
  using progress = createProgress(io, output);
  if (isFiltered) {
    progress.show(`Redriving up to ${formatCount(options.limit, "item")}`);
    results.push(
      ...(await api.post<readonly RedriveResult[]>(`${path}/redrive`, { ...filters, limit: options.limit })),
    );
  } else {
    for (const id of ids) {
      progress.show(`Redriving ${renderBar(results.length, ids.length)} items`);
      const body = { asNewId: options.asNewId === true };
      results.push(await api.post<RedriveResult>(`${path}${formatPath(id, "redrive")}`, body));
    }
  }
  progress[Symbol.dispose]();
  output.list(results, REDRIVE_COLUMNS, "No items found.");
  return results.every(({ status }) => status === "released") ? EXIT.done : EXIT.failed;
}
