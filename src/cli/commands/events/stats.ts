import type { Command } from "commander";
import type { ChannelTotals } from "../../../resources/events/series.ts";
import { listAppNames } from "../../client/app.ts";
import { appOptions, type Client, createAction, examples } from "../../client/command.ts";
import { formatTime, parsePast, timeOptions } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { compress, renderSparkline } from "../../output/sparkline.ts";
import type { Column } from "../../output/table.ts";

interface StatsOptions {
  readonly app?: string;
  readonly since?: number;
  readonly until?: number;
}

const TREND_CELLS = 15;
/** Maximum number of channels, so that the command needs few requests. */
const MAX_CHANNELS = 1_000;
const RED = { 0: undefined, "*": "red" } as const;
const YELLOW = { 0: undefined, "*": "yellow" } as const;

const COLUMNS: readonly Column<ChannelTotals>[] = [
  { title: "channel", value: ({ channel }) => channel },
  { title: "received", value: ({ received }) => received },
  { title: "trend", value: ({ trend }) => renderSparkline(compress(trend, TREND_CELLS)) },
  { title: "rejected", value: ({ rejected }) => rejected, colors: RED },
  { title: "published", value: ({ published }) => published },
  { title: "dupl.", value: ({ duplicate }) => duplicate },
  { title: "quar.", value: ({ quarantined }) => quarantined, colors: YELLOW },
  { title: "ignored", value: ({ ignored }) => ignored },
  { title: "recov.", value: ({ recovered }) => recovered },
  { title: "handled", value: ({ handlerSucceeded }) => handlerSucceeded },
  { title: "failed", value: ({ handlerFailed }) => handlerFailed, colors: RED },
  { title: "p50 ms", value: ({ latencyP50Ms }) => latencyP50Ms },
  { title: "p99 ms", value: ({ latencyP99Ms }) => latencyP99Ms },
];

export function define(command: Command, context: CommandContext): void {
  appOptions(command)
    .argument("[channel]", "only channels with this uid")
    .action(createAction<[string | undefined], StatsOptions>(context, showStats));
  timeOptions(command, { fallback: " (default: 1h)" });
  examples(command, [
    ["inlet stats", "counts of the last hour, for each channel of all apps"],
    ["inlet stats orders --app shop --since 7d", "one channel of one app"],
    ["inlet stats --since 24h -o json", "one JSON object per channel"],
  ]);
}

async function showStats(
  { api, output, selectedApp }: Client,
  [channel]: readonly [string | undefined],
  { since = parsePast("1h"), until }: StatsOptions,
): Promise<undefined> {
  const appId = (await selectedApp())?.id;
  const query = { appId, channel, from: formatTime(since), to: formatTime(until) };
  const { items, total } = await api.list<ChannelTotals>("/metrics/channels", query, MAX_CHANNELS);
  const isOfOneApp = new Set(items.map((one) => one.appId)).size < 2;
  const names = output.isJson || isOfOneApp ? undefined : await listAppNames(api);
  const app = { title: "app", value: (one: ChannelTotals) => names?.get(one.appId) ?? one.appId };
  const columns = names === undefined ? COLUMNS : [app, ...COLUMNS];
  output.list(items, columns, "No channel received a delivery in this time.");
  if (items.length < total) output.note(`Only the busiest ${items.length} of ${total} channels are shown.`);
}
