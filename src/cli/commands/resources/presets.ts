import type { Command } from "commander";
import type { Preset } from "../../../verify/presets.ts";
import { formatPath } from "../../client/api.ts";
import { apiOptions, declareSubcommands, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Preset>[] = [
  { title: "preset", value: ({ preset }) => preset },
  { title: "title", value: ({ title }) => title },
  { title: "scheme", value: ({ verification }) => verification.scheme },
  {
    title: "streams",
    value: ({ streams }) => streams.map(({ name }) => name),
    isOptional: true,
    wraps: true,
  },
  {
    title: "registers",
    value: ({ registrations }) => registrations.map(({ target }) => target),
    isOptional: true,
  },
  { title: "description", value: ({ description }) => description, isOptional: true, wraps: true },
];

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);

  part<[readonly string[]]>(
    "list [words...]",
    "List provider presets, filtered by words in their names and descriptions",
    async ({ api, output }, [words]) => {
      const { items } = await api.list<Preset>("/presets");
      const found = items.filter(({ preset, title, description }) => {
        const text = `${preset} ${title} ${description}`.toLowerCase();
        return words.every((word) => text.includes(word.toLowerCase()));
      });
      output.list(found, COLUMNS, "No matching preset.");
    },
  );
  part<[string]>("get <preset>", "Show how to set up a provider", async ({ api, output }, [name]) => {
    const preset = await api.get<Preset>(formatPath("presets", name));
    const { title, description, documentationUrl, secret, verification, typePath, idPath } = preset;
    output.one(preset, [
      ["provider", title],
      ["sends", description],
      ["documented at", documentationUrl],
      ["verified by", verification.scheme],
      ["secret", secret === null ? "not required" : `${secret.label}: ${secret.hint}`],
      ["type", typePath],
      ["id", idPath],
      ["route keys", preset.intake?.routeBy.join(", ")],
      ...[...preset.notes, ...(preset.intake?.notes ?? [])].map((note) => ["note", note] as const),
      ...preset.streams.map(({ name: stream, title, params }) => {
        const names = Object.keys((params.properties ?? {}) as object).map((param) => `${param}=…`);
        const command = ["inlet channels poll", name, stream, ...names].join(" ");
        return ["can be polled", `${title}: ${output.adapt(command)}`] as const;
      }),
      ...preset.registrations.map(({ target, title, params }) => {
        const names = Object.keys((params.properties ?? {}) as object).map((param) => `${param}=…`);
        const command = ["inlet channels register", name, ...names, "--target", target].join(" ");
        return ["can be registered", `${title}: ${output.adapt(command)}`] as const;
      }),
    ]);
  }).alias("show");
  examples(command, [
    ["inlet presets shop", "presets about shops"],
    ["inlet presets get github", "where to find its secret, and notes"],
  ]);
}
