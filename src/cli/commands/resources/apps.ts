import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { findApp } from "../../client/app.ts";
import { apiOptions, type Client, createAction, examples } from "../../client/command.ts";
import type { App } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import { usageError } from "../../exit.ts";
import { confirm } from "../../output/prompt.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<App>[] = [
  { title: "id", value: ({ id }) => id, whole: true },
  { title: "uid", value: ({ uid }) => uid },
  { title: "title", value: ({ title }) => title },
  { title: "blueprint", value: ({ blueprintId }) => blueprintId },
  { title: "created", value: ({ createdAt }) => createdAt },
];

export function define(command: Command, context: CommandContext): void {
  const part = (spec: string, summary: string) => apiOptions(command.command(spec)).description(summary);

  apiOptions(command.command("list", { isDefault: true }))
    .description("List the apps")
    .action(
      createAction(context, async ({ api, output }) => {
        output.list((await api.list<App>("/apps")).items, COLUMNS, "There is no app yet.");
      }),
    );
  part("get <app>", "Show an app").action(
    createAction<[string]>(context, async ({ api, output }, [named]) => {
      output.one(await api.get<App>(formatPath("apps", (await findApp(api, named)).id)));
    }),
  );
  part("install <blueprintId>", "Install a blueprint as an app")
    .option("--space <spaceId>", "space for the app (default: the key's space)")
    .action(
      createAction<[string], { readonly space?: string }>(
        context,
        async ({ api, output }, [blueprintId], { space }) => {
          const spaceId = space === undefined ? {} : { spaceId: space };
          output.one(await api.post<App>("/apps/install", { blueprintId, ...spaceId }));
        },
      ),
    );
  part("upgrade <app>", "Update an app to the current version of its blueprint")
    .option("--remove-missing", "remove channels that the blueprint no longer has")
    .action(
      createAction<[string], { readonly removeMissing?: boolean }>(
        context,
        async (client, [named], options) => {
          const { id } = await findApp(client.api, named);
          const { removeMissing = false } = options;
          client.output.one(await client.api.post<App>(formatPath("apps", id, "upgrade"), { removeMissing }));
        },
      ),
    );
  part("delete <app>", "Delete an app with its channels and subscriptions")
    .option("--purge", "also delete its topics with all events")
    .option("-y, --yes", "do not ask for confirmation")
    .action(createAction<[string], DeleteOptions>(context, deleteApp));

  examples(command, [
    ["inlet apps", "all apps"],
    ["inlet apps get welcome", "by uid or id"],
    ["inlet apps install bp_1", "create an app with the blueprint's channels"],
  ]);
}

interface DeleteOptions {
  readonly purge?: boolean;
  readonly yes?: boolean;
}

async function deleteApp(
  { api, output, io }: Client,
  [named]: [string],
  options: DeleteOptions,
): Promise<undefined> {
  const app = await findApp(api, named);
  const question = `Delete the app ${app.uid} (${app.id})${options.purge ? " and all its events" : ""}?`;
  if (!options.yes && !(await confirm(io, question)))
    throw usageError("The app was not deleted. Use --yes to confirm.");
  output.one(await api.delete(formatPath("apps", app.id), { purge: options.purge }));
}
