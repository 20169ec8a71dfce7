import type { Command } from "commander";
import { formatPath } from "../../client/api.ts";
import { apiOptions, createAction, examples } from "../../client/command.ts";
import type { Preset } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Preset>[] = [
  { title: "preset", value: ({ preset }) => preset, whole: true },
  { title: "title", value: ({ title }) => title },
  { title: "scheme", value: ({ verification }) => verification.scheme },
  { title: "description", value: ({ description }) => description },
];

/** Providers that come with the gateway. */
export function define(command: Command, context: CommandContext): void {
  apiOptions(command.command("list [words...]", { isDefault: true }))
    .description("List the providers, or those in whose name or description all the words stand")
    .action(
      createAction<[readonly string[]]>(context, async ({ api, output }, [words]) => {
        const { items } = await api.list<Preset>("/presets");
        const found = items.filter(({ preset, title, description }) => {
          const text = `${preset} ${title} ${description}`.toLowerCase();
          return words.every((word) => text.includes(word.toLowerCase()));
        });
        output.list(found, COLUMNS, "No preset is like that.");
      }),
    );
  apiOptions(command.command("get <preset>"))
    .description("Show how to set a provider up")
    .action(
      createAction<[string]>(context, async ({ api, output }, [name]) => {
        const preset = await api.get<Preset>(formatPath("presets", name));
        const { title, description, documentationUrl, secret, verification, typePath, idPath } = preset;
        output.one(preset, [
          ["provider", title],
          ["sends", description],
          ["documented at", documentationUrl],
          ["verified by", verification.scheme],
          ["secret", secret === null ? "none is needed" : `${secret.label}: ${secret.hint}`],
          ["type", typePath],
          ["id", idPath],
          ...preset.notes.map((note) => ["note", note] as const),
        ]);
      }),
    );
  examples(command, [
    ["inlet presets shop", "those that have to do with shops"],
    ["inlet presets get github", "where its secret stands, and what to know"],
  ]);
}
