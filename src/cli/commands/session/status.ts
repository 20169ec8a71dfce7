import type { Command } from "commander";
import type { AppFigures } from "../../../resources/events/app-figures.ts";
import { collect, describeIncomplete } from "../../client/collect.ts";
import { apiOptions, type Client, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT, type ExitCode } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

interface Ready {
  readonly status: string;
  readonly checks?: Readonly<Record<string, { readonly ok: boolean; readonly reason?: string }>>;
}

const RED = { 0: undefined, "": undefined, "*": "red" } as const;
const YELLOW = { ...RED, "*": "yellow" } as const;
const COLUMNS: readonly Column<AppFigures>[] = [
  { title: "app", value: ({ id }) => id },
  { title: "uid", value: ({ uid }) => uid, isOptional: true },
  { title: "channels", value: ({ channels }) => channels, isOptional: true },
  { title: "not active", value: ({ channelsNotActive }) => channelsNotActive, colors: YELLOW },
  { title: "subscriptions", value: ({ subscriptions }) => subscriptions, isOptional: true },
  { title: "failing", value: ({ subscriptionsFailing }) => subscriptionsFailing, colors: RED },
  { title: "lag", value: ({ lag }) => lag },
  { title: "dead letters", value: ({ deadLetters }) => deadLetters, colors: RED },
  { title: "quarantine", value: ({ quarantined }) => quarantined, colors: YELLOW },
];

export function define(command: Command, context: CommandContext): void {
  apiOptions(command).action(createAction(context, showStatus));
  examples(command, [
    ["inlet status", "exits with 4 if the gateway is not ready"],
    ["inlet status -o json --url http://127.0.0.1:8080", "JSON for a program"],
  ]);
}

/** Shows the readiness of the gateway and its apps. If the list of apps cannot be read to its end, shows the apps that were read. */
async function showStatus({ api, output }: Client): Promise<ExitCode> {
  const response = await api.open("/../readyz");
  const { status, checks = {} } = (await response.json().catch(() => ({ status: "unknown" }))) as Ready;
  const isReady = status === "ready";
  const { items: apps, failure } = await collect(api.items<AppFigures>("/overview/apps"));
  if (output.isJson) output.one({ url: api.baseUrl, status, checks, apps, error: failure?.message ?? null });
  else {
    output.say(`${api.baseUrl} is ${output.paint(isReady ? "green" : "red", status)}.`);
    for (const [name, { ok, reason = "" }] of Object.entries(checks))
      if (!ok) output.note(`  ${name}: ${reason}`);
    output.say("");
    if (apps.length > 0 || failure === undefined) output.list(apps, COLUMNS, "There is no app yet.");
  }
  if (failure !== undefined) {
    output.note(describeIncomplete(apps.length, "apps", failure), "yellow");
    return failure.exitCode;
  }
  return isReady ? EXIT.done : EXIT.unavailable;
}
