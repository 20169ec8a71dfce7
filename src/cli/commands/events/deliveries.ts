import { type Command, Option } from "commander";
import { DELIVERY_STATUSES } from "../../../event/delivery-record.ts";
import type { Delivery, WholeDelivery } from "../../../resources/events/deliveries/schema.ts";
import { showAppUids } from "../../client/app.ts";
import { appOptions, declareSubcommands, examples, parseCount } from "../../client/command.ts";
import { formatTime, timeOptions } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Delivery>[] = [
  { title: "received", value: ({ receivedAt }) => receivedAt },
  { title: "id", value: ({ id }) => id },
  { title: "app", value: ({ appId }) => appId, isOptional: true },
  { title: "channel", value: ({ channelUid }) => channelUid },
  {
    title: "status",
    value: ({ status }) => status,
    colors: { published: "green", quarantined: "yellow", refused: "red", failed: "red" },
  },
  { title: "http", value: ({ httpStatus }) => httpStatus, isOptional: true },
  { title: "trace", value: ({ traceId }) => traceId },
  { title: "reason", value: ({ reason }) => reason, wraps: true },
];

interface ListOptions {
  readonly channel?: string;
  readonly status?: string;
  readonly request?: string;
  readonly since?: number;
  readonly until?: number;
  readonly limit: number;
}

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, appOptions);

  const list = part<[], ListOptions>(
    "list",
    "List the recorded deliveries of an app or of all apps, newest first",
    async ({ api, output, selectedApp }, _, { channel, status, request, since, until, limit }) => {
      const query = {
        appId: (await selectedApp())?.id,
        channel,
        status,
        requestId: request,
        from: formatTime(since),
        to: formatTime(until),
      };
      const { items, total } = await api.listNewest<Delivery>("/deliveries", query, limit);
      output.list(items, await showAppUids({ api, output }, items, COLUMNS), "No deliveries found.");
      if (total > items.length) output.note(`Showing ${items.length} of ${total}.`);
    },
  )
    .option("--channel <channel>", "only deliveries to this channel (uid or id)")
    .addOption(new Option("--status <status>", "only deliveries with this status").choices(DELIVERY_STATUSES))
    .option("--request <id>", "only the delivery with this X-Request-Id")
    .option("--limit <count>", "maximum number of deliveries", parseCount(1, 10_000), 50);
  timeOptions(list);
  part<[string]>(
    "get <delivery>",
    "Show a delivery with its body, and how it would be processed now",
    async ({ api, appPath }, [id]) => api.get<WholeDelivery>(await appPath("deliveries", id)),
  );
  examples(command, [
    [
      "inlet deliveries --status refused --since 12:05",
      "rejected deliveries with their reasons and trace ids",
    ],
    ["inlet deliveries list --help", "all filters, and the forms of times"],
    [
      "inlet deliveries get del_1",
      "with its trace, if INLET_TRACE_URL is set; the audit log records the access",
    ],
  ]);
}
