import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import type { Subscription } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import { usageError } from "../../exit.ts";
import { confirm } from "../../output/prompt.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Subscription>[] = [
  { title: "id", value: ({ id }) => id, whole: true },
  { title: "events", value: ({ eventUid }) => eventUid },
  {
    title: "state",
    value: ({ state }) => state,
    color: ({ state }) => (({ active: "green", failing: "red" }) as const)[state] ?? "yellow",
  },
  { title: "lag", value: ({ lag }) => lag },
  { title: "behind s", value: ({ lagSeconds }) => lagSeconds },
  { title: "pending", value: ({ pending }) => pending },
  { title: "dead letters", value: ({ deadLetters }) => deadLetters },
  { title: "handler", value: ({ handler }) => handler?.url },
  { title: "last error", value: ({ lastError }) => lastError?.message },
];

export function define(command: Command, context: CommandContext): void {
  const part = (spec: string, summary: string) => appOptions(command.command(spec)).description(summary);

  appOptions(command.command("list", { isDefault: true }))
    .description("List the subscriptions of an app")
    .action(
      createAction(context, async ({ api, output, app }) => {
        const { items } = await api.list<Subscription>(formatPath("apps", (await app()).id, "subscriptions"));
        output.list(items, COLUMNS, "The app has no subscription.");
      }),
    );
  part("get <subscription>", "Show a subscription").action(
    createAction<[string]>(context, async ({ api, output, app }, [id]) => {
      output.one(await api.get<Subscription>(formatPath("apps", (await app()).id, "subscriptions", id)));
    }),
  );
  part("create <events>", "Subscribe to <channel>:<type>, <channel>:* or *")
    .option("--handler <url>", "post events to this address; the signing secret is shown once")
    .option("--ordered", "deliver events to the handler in order")
    .option("--start-at <when>", "now, earliest, or a timestamp (default: now)")
    .action(
      createAction<[string], CreateOptions>(context, async ({ api, output, app }, [eventUid], options) => {
        const { handler, ordered, startAt } = options;
        if (ordered && handler === undefined) throw usageError("--ordered requires --handler.");
        const body = {
          eventUid,
          ...(startAt === undefined ? {} : { startAt }),
          ...(handler === undefined ? {} : { handler: { url: handler, ...(ordered ? { ordered } : {}) } }),
        };
        output.one(
          await api.post<Subscription>(formatPath("apps", (await app()).id, "events", "subscribe"), body),
        );
      }),
    );
  for (const [verb, summary] of [
    ["pause", "Pause a subscription; its position is retained"],
    ["resume", "Resume a subscription"],
  ] as const) {
    part(`${verb} <subscription>`, summary).action(
      createAction<[string]>(context, async ({ api, output, app }, [id]) => {
        output.one(
          await api.post<Subscription>(formatPath("apps", (await app()).id, "subscriptions", id, verb)),
        );
      }),
    );
  }
  part("rewind <subscription>", "Rewind a subscription to a time or to its earliest event")
    .requiredOption("--to <when>", "now, earliest, or a timestamp such as 2026-01-31T08:00:00Z")
    .action(
      createAction<[string], { readonly to: string }>(context, async ({ api, output, app }, [id], { to }) => {
        const path = formatPath("apps", (await app()).id, "subscriptions", id, "rewind");
        output.one(await api.post<Subscription>(path, { startAt: to }));
      }),
    );
  part("delete <subscription>", "Delete a subscription with its consumer groups")
    .option("-y, --yes", "do not ask for confirmation")
    .action(
      createAction<[string], { readonly yes?: boolean }>(
        context,
        async ({ api, output, app, io }, [id], { yes }) => {
          const path = formatPath("apps", (await app()).id, "subscriptions", id);
          if (!yes && !(await confirm(io, `Delete the subscription ${id}?`)))
            throw usageError("The subscription was not deleted. Use --yes to confirm.");
          output.one(await api.delete(path));
        },
      ),
    );

  examples(command, [
    ["inlet subscriptions", "subscriptions with their lag"],
    ["inlet subscriptions create 'inbox:*' --start-at earliest", "for readers"],
    ["inlet subscriptions create '*' --handler https://example.com/events", "for a handler"],
  ]);
}

interface CreateOptions {
  readonly handler?: string;
  readonly ordered?: boolean;
  readonly startAt?: string;
}
