import type { Command } from "commander";
import type { SubscriptionEntity } from "../../../resources/events/subscriptions/schema.ts";
import {
  appOptions,
  confirmDeletion,
  type DeleteOptions,
  declareSubcommands,
  examples,
  parseCount,
  parseJson,
} from "../../client/command.ts";
import { readData } from "../../client/delivery.ts";
import { explainTimes, parseStart } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { usageError } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<SubscriptionEntity>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "events", value: ({ eventUid }) => eventUid },
  { title: "state", value: ({ state }) => state, colors: { active: "green", failing: "red", "*": "yellow" } },
  { title: "lag", value: ({ lag }) => lag },
  { title: "behind s", value: ({ lagSeconds }) => lagSeconds, isOptional: true },
  { title: "pending", value: ({ pending }) => pending, isOptional: true },
  { title: "dead letters", value: ({ deadLetters }) => deadLetters },
  { title: "handler", value: ({ handler }) => handler?.url, isOptional: true, wraps: true },
  { title: "last error", value: ({ lastError }) => lastError?.message, wraps: true },
];

const FLAGS = { ordered: "--ordered", orderedByKey: "--ordered-by-key", batch: "--batch" } as const;

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, appOptions);

  part("list", "List the subscriptions of an app", async ({ api, output, appPath }) => {
    const { items } = await api.list<SubscriptionEntity>(await appPath("subscriptions"));
    output.list(items, COLUMNS, "The app has no subscription.");
  });
  part<[string]>("get <subscription>", "Show a subscription", async ({ api, appPath }, [id]) =>
    api.get(await appPath("subscriptions", id)),
  );
  const create = part<[string], CreateOptions>(
    "create <events>",
    "Subscribe to <channel>:<type>, <channel>:* or *",
    async ({ api, appPath, io }, [eventUid], options) => {
      const { handler: url, ordered, orderedByKey, batch: maxEvents, when: filter } = options;
      const { connection: connectionId, startAt } = options;
      for (const name of ["ordered", "orderedByKey", "batch"] as const)
        if (options[name] !== undefined && url === undefined)
          throw usageError(`${FLAGS[name]} requires --handler.`);
      if (ordered && orderedByKey)
        throw usageError(`${FLAGS.ordered} and ${FLAGS.orderedByKey} exclude each other.`);
      if (filter !== undefined && url === undefined) throw usageError("--when requires --handler.");
      const batch = maxEvents === undefined ? {} : { batch: { maxEvents } };
      const handler =
        url === undefined ? undefined : { url, ordered: orderedByKey ? "key" : ordered, ...batch };
      const when = filter === undefined ? undefined : parseJson((await readData(io, filter)).toString());
      return api.post(await appPath("events", "subscribe"), {
        eventUid,
        connectionId,
        startAt,
        handler,
        when,
      });
    },
  )
    .option("--handler <url>", "post events to this address; the signing secret is shown once")
    .option(FLAGS.ordered, "deliver the events of each topic to the handler in order")
    .option(FLAGS.orderedByKey, "deliver the events of each partitionkey to the handler in order")
    .option(
      `${FLAGS.batch} <events>`,
      "send up to this number of events in one request",
      parseCount(1, 1_000),
    )
    .option("--when <schema>", "JSON Schema of the events that the handler gets: text, @file, or @-")
    .option("--connection <connectionId>", "connection for the channels that fetch these events")
    .option("--start-at <when>", "now, earliest, or a time such as 2h or 12:05 (default: now)", parseStart);
  explainTimes(create);
  for (const [verb, summary] of [
    ["pause", "Pause a subscription; its position is retained"],
    ["resume", "Resume a subscription"],
  ] as const) {
    part<[string]>(`${verb} <subscription>`, summary, async ({ api, appPath }, [id]) =>
      api.post(await appPath("subscriptions", id, verb)),
    );
  }
  const rewind = part<[string], { readonly to: string }>(
    "rewind <subscription>",
    "Rewind a subscription to a time or to its earliest event",
    async ({ api, appPath }, [id], { to: startAt }) =>
      api.post(await appPath("subscriptions", id, "rewind"), { startAt }),
  ).requiredOption("--to <when>", "now, earliest, or a time such as 2h, 12:05 or a timestamp", parseStart);
  explainTimes(rewind);
  part<[string], DeleteOptions>(
    "delete <subscription>",
    "Delete a subscription with its consumer groups",
    async (client, [id], options) => {
      const path = await client.appPath("subscriptions", id);
      await confirmDeletion(client, options, "subscription", id);
      return client.api.delete(path);
    },
  ).option("-y, --yes", "do not ask for confirmation");

  examples(command, [
    ["inlet subscriptions", "subscriptions with their lag"],
    ["inlet subscriptions create 'inbox:*' --start-at earliest", "for readers"],
    ["inlet subscriptions create '*' --handler https://example.com/events", "for a handler"],
    ["inlet subscriptions create '*' --handler https://example.com/events --when @when.json", "some events"],
  ]);
}

interface CreateOptions {
  readonly handler?: string;
  readonly ordered?: boolean;
  readonly orderedByKey?: boolean;
  readonly batch?: number;
  readonly connection?: string;
  readonly startAt?: string;
  readonly when?: string;
}
