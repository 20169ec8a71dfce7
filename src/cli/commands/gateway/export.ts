import type { Command } from "commander";
import type { Channel } from "../../../channels/entity.ts";
import { formatPath } from "../../client/api.ts";
import { findApp } from "../../client/app.ts";
import type { Blueprint } from "../../client/blueprint.ts";
import { apiOptions, type Client, createAction, examples } from "../../client/command.ts";
import type { App } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, type ExitCode } from "../../exit.ts";
import { escapeJson } from "../../output/escape.ts";

interface ExportOptions {
  readonly organization: string;
}

export function define(command: Command, context: CommandContext): void {
  apiOptions(command)
    .description("Print a declarative config file of the existing blueprints, apps and channels.")
    .argument("[app]", "uid or id of an app; exports only this app and its blueprint")
    .option("--organization <name>", "name of the organization in the file", "default")
    .action(createAction<[string | undefined], ExportOptions>(context, exportSetUp));
  examples(command, [
    ["inlet export > setup.json", "all apps, for `inlet apply -f setup.json`"],
    ["inlet export stripe > stripe.json", "one app with its blueprint"],
  ]).addHelpText(
    "after",
    `
The file contains no secrets. It refers to environment variables, which \`inlet plan\` and \`inlet apply\` read. The organization \`default\` is
the one of the first start.`,
  );
}

async function exportSetUp(
  { api, io, output }: Client,
  [named]: readonly [string | undefined],
  { organization }: ExportOptions,
): Promise<ExitCode> {
  const { composeFile } = await import("../../setup/export.ts");
  const selected = named === undefined ? undefined : await findApp(api, named);
  const { items: all } = await api.list<App>("/apps");
  const { items: spaces } = await api.list<{ readonly id: string; readonly name: string }>("/spaces");
  const { items: blueprints } = await api.list<Blueprint>("/blueprints");
  const apps = [];
  for (const app of all) {
    // The system app exists in each organization.
    if (app.spaceId === null || (selected !== undefined && app.id !== selected.id)) continue;
    const { items: channels } = await api.list<Channel>(formatPath("apps", app.id, "channels"));
    const space = spaces.find(({ id }) => id === app.spaceId)?.name ?? "default";
    apps.push({ app, space, channels });
  }
  const wanted = blueprints.filter(({ id }) => selected === undefined || id === selected.blueprintId);
  const used = new Set(apps.map(({ space }) => space));
  const { file, variables, omitted } = await composeFile({
    organization,
    spaces: spaces.map(({ name }) => name).filter((name) => selected === undefined || used.has(name)),
    blueprints: wanted,
    apps,
  });
  const lines = JSON.stringify(file, null, 2).split("\n");
  io.stdout.write(`${lines.map(escapeJson).join("\n")}\n`);
  if (variables.length > 0)
    output.note(`Set these variables before you apply the file: ${variables.join(", ")}`);
  for (const one of omitted) output.note(`Not in the file: ${one}`, "yellow");
  return EXIT.done;
}
