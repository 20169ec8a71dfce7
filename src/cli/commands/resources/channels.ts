import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { appOptions, createAction, examples, parseCount } from "../../client/command.ts";
import type { Channel } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import { usageError } from "../../exit.ts";
import { confirm } from "../../output/prompt.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Channel>[] = [
  { title: "uid", value: ({ uid }) => uid, whole: true },
  { title: "kind", value: ({ kind }) => kind },
  {
    title: "state",
    value: ({ state }) => state,
    color: ({ state }) => (state === "active" ? "green" : "yellow"),
  },
  { title: "preset", value: ({ config }) => config.preset },
  { title: "events", value: ({ events }) => events.map(({ type }) => type) },
  { title: "address", value: ({ url }) => url, whole: true },
];

const MAX_GRACE_SECONDS = 30 * 86_400;

export function define(command: Command, context: CommandContext): void {
  const part = (spec: string, summary: string) => appOptions(command.command(spec)).description(summary);

  appOptions(command.command("list", { isDefault: true }))
    .description("List the channels of an app")
    .action(
      createAction(context, async ({ api, output, app }) => {
        const { id } = await app();
        const { items } = await api.list<Channel>(formatPath("apps", id, "channels"));
        output.list(items, COLUMNS, "The app has no channel.");
      }),
    );
  part("get <channel>", "Show a channel by its uid or id").action(
    createAction<[string]>(context, async ({ api, output, app }, [named]) => {
      output.one(await api.get<Channel>(formatPath("apps", (await app()).id, "channels", named)));
    }),
  );
  for (const [verb, summary] of [
    ["pause", "Pause a channel: deliveries are stored in quarantine, sources stop"],
    ["resume", "Resume a channel: stored deliveries are processed first"],
  ] as const) {
    part(`${verb} <channel>`, summary).action(
      createAction<[string]>(context, async ({ api, output, app }, [named]) => {
        output.one(await api.post<Channel>(formatPath("apps", (await app()).id, "channels", named, verb)));
      }),
    );
  }
  part("rotate <channel>", "Give a channel a new address")
    .option(
      "--grace <seconds>",
      "how long the old address stays valid (default: the API's default)",
      parseCount(0, MAX_GRACE_SECONDS),
    )
    .action(
      createAction<[string], { readonly grace?: number }>(
        context,
        async ({ api, output, app }, [named], { grace }) => {
          const body = grace === undefined ? {} : { graceSeconds: grace };
          output.one(
            await api.post<Channel>(formatPath("apps", (await app()).id, "channels", named, "rotate"), body),
          );
        },
      ),
    );
  part("delete <channel>", "Delete a channel")
    .option("--purge", "also delete its topics with all events")
    .option("-y, --yes", "do not ask for confirmation")
    .action(
      createAction<[string], { readonly purge?: boolean; readonly yes?: boolean }>(
        context,
        async ({ api, output, app, io }, [named], { purge, yes }) => {
          const { id, uid } = await app();
          const question = `Delete the channel ${named} of the app ${uid}${purge ? " and its events" : ""}?`;
          if (!yes && !(await confirm(io, question)))
            throw usageError("The channel was not deleted. Use --yes to confirm.");
          output.one(await api.delete(formatPath("apps", id, "channels", named), { purge }));
        },
      ),
    );

  examples(command, [
    ["inlet channels --app welcome", "channels with their addresses"],
    ["inlet channels pause inbox", "deliveries are stored until you resume"],
    ["inlet channels rotate inbox --grace 3600", "the old address stays valid for an hour"],
  ]);
}
