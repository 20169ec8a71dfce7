import type { Command } from "commander";
import type { blueprint } from "../../../resources/apps/blueprints/schema.ts";
import type { EntityOf } from "../../../resources/kit/shape.ts";
import { formatPath } from "../../client/api.ts";
import { findBlueprint } from "../../client/blueprint.ts";
import {
  apiOptions,
  confirmDeletion,
  type DeleteOptions,
  declareSubcommands,
  examples,
  fileOption,
  readEntity,
} from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

type Blueprint = EntityOf<typeof blueprint>;

const COLUMNS: readonly Column<Blueprint>[] = [
  { title: "id", value: ({ id }) => id },
  { title: "uid", value: ({ uid }) => uid },
  { title: "title", value: ({ title }) => title, wraps: true },
  { title: "channels", value: ({ channels }) => channels.map(({ uid }) => uid), wraps: true },
];

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);

  part("list", "List the blueprints", async ({ api, output }) => {
    output.list((await api.list<Blueprint>("/blueprints")).items, COLUMNS, "There is no blueprint yet.");
  });
  part<[string]>("get <blueprint>", "Show a blueprint by its uid or id", ({ api }, [named]) =>
    findBlueprint(api, named),
  );
  fileOption(
    part<[], { readonly file: string }>("create", "Create a blueprint", async ({ api, io }, _, { file }) =>
      api.post<Blueprint>("/blueprints", await readEntity(io, file)),
    ),
  );
  fileOption(
    part<[string], { readonly file: string }>(
      "update <blueprint>",
      "Replace the fields of a blueprint that a file contains",
      async ({ api, io }, [named], { file }) => {
        const change = await readEntity(io, file);
        const { id } = await findBlueprint(api, named);
        return api.update<Blueprint>(formatPath("blueprints", id), () => change);
      },
    ),
  );
  part<[string], DeleteOptions>(
    "delete <blueprint>",
    "Delete a blueprint; its apps remain",
    async (client, [named], options) => {
      const { id, uid } = await findBlueprint(client.api, named);
      await confirmDeletion(client, options, "blueprint", `${uid} (${id})`);
      return client.api.delete(formatPath("blueprints", id));
    },
  ).option("-y, --yes", "do not ask for confirmation");

  examples(command, [
    ["inlet blueprints create -f shop.json", "a blueprint from a JSON file"],
    [
      "inlet blueprints update shop -f title.json",
      "changed fields only; apps change with `inlet apps upgrade`",
    ],
  ]);
}
