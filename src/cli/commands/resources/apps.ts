import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { findApp } from "../../client/app.ts";
import { findBlueprint } from "../../client/blueprint.ts";
import {
  apiOptions,
  confirmDeletion,
  type DeleteOptions,
  declareSubcommands,
  examples,
  fileOption,
  parseJson,
  readEntity,
} from "../../client/command.ts";
import { readData } from "../../client/delivery.ts";
import type { App, AppSummary } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

interface InstallOptions {
  readonly space?: string;
  readonly uid?: string;
  readonly title?: string;
  readonly channels?: string;
}

const COLUMNS: readonly Column<AppSummary>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "uid", value: ({ uid }) => uid },
  { title: "title", value: ({ title }) => title, wraps: true },
  {
    title: "health",
    value: ({ health }) => health,
    colors: { ok: "green", warning: "yellow", error: "red" },
  },
  { title: "channels", value: ({ channels }) => channels },
  { title: "last event", value: ({ lastEventAt }) => lastEventAt, isOptional: true },
  { title: "events/min", value: ({ eventsPerMinute }) => eventsPerMinute },
  { title: "quarantined", value: ({ quarantined }) => quarantined },
  { title: "blueprint", value: ({ blueprintId }) => blueprintId, isOptional: true },
  { title: "created", value: ({ createdAt }) => createdAt, isOptional: true },
];

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);

  part<[], { readonly search?: string }>(
    "list",
    "List the apps with their rate, quarantined items and health",
    async ({ api, output }, _, { search }) => {
      const none = search === undefined ? "There is no app yet." : `No uid or title contains ${search}.`;
      output.list((await api.list<AppSummary>("/apps/summaries", { search })).items, COLUMNS, none);
    },
  ).option("--search <text>", "only apps whose uid or title contains this text");
  part<[string]>("get <app>", "Show an app", async ({ api }, [named]) =>
    api.get(formatPath("apps", (await findApp(api, named)).id)),
  );
  fileOption(
    part<[], { readonly file: string }>(
      "create",
      "Create an app from a JSON file, which names its blueprint",
      async ({ api, io }, _, { file }) => {
        const { blueprint, ...fields } = (await readEntity(io, file)) as { readonly blueprint?: unknown };
        const named =
          blueprint === undefined ? {} : { blueprintId: (await findBlueprint(api, String(blueprint))).id };
        return api.post<App>("/apps/install", { ...fields, ...named });
      },
    ),
  );
  part<[string], InstallOptions>(
    "install <blueprint>",
    "Install a blueprint as an app",
    async ({ api, io }, [blueprint], { space: spaceId, channels, ...named }) =>
      api.post<App>("/apps/install", {
        ...named,
        // Blueprints of other organizations, which a store offers, can only be named by their id.
        blueprintId: blueprint.startsWith("bp_") ? blueprint : (await findBlueprint(api, blueprint)).id,
        spaceId,
        channels: channels === undefined ? undefined : parseJson(String(await readData(io, channels))),
      }),
  )
    .option("--space <spaceId>", "space for the app (default: the key's space)")
    .option("--uid <uid>", "name of the app (default: the blueprint's uid)")
    .option("--title <title>", "title of the app (default: the blueprint's title)")
    .option(
      "--channels <json>",
      "secrets and connections of the channels by uid: JSON, @file, or @- for standard input",
    );
  part<[string], { readonly removeMissing?: boolean }>(
    "upgrade <app>",
    "Update an app to the current version of its blueprint",
    async ({ api }, [named], { removeMissing = false }) =>
      api.post<App>(formatPath("apps", (await findApp(api, named)).id, "upgrade"), { removeMissing }),
  ).option("--remove-missing", "remove channels that the blueprint no longer has");
  part<[string], DeleteOptions>(
    "delete <app>",
    "Delete an app with its channels and subscriptions",
    async (client, [named], options) => {
      const { id, uid } = await findApp(client.api, named);
      const { purge } = options;
      await confirmDeletion(client, options, "app", `${uid} (${id})${purge ? " and all its events" : ""}`);
      return client.api.delete(formatPath("apps", id), { purge });
    },
  )
    .option("--purge", "also delete its topics with all events")
    .option("-y, --yes", "do not ask for confirmation");

  examples(command, [
    ["inlet apps", "all apps, with their figures of the last hour"],
    ["inlet apps --search shop", "apps whose uid or title contains shop"],
    ["inlet apps get welcome", "by uid or id"],
    ["inlet apps install shop", "create an app with the blueprint's channels"],
    ["inlet apps create -f app.json", 'such as {"blueprint": "shop", "uid": "shop-eu"}'],
    [
      "inlet apps install shop --channels @channels.json",
      '{"main": {"secrets": [{"value": "…"}]}} in a file',
    ],
  ]);
}
