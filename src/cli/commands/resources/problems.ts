import { type Command, Option } from "commander";
import { PROBLEM_KINDS } from "../../../event/problem.ts";
import type { Problem } from "../../../resources/events/problems.ts";
import { formatPath } from "../../client/api.ts";
import { apiOptions, declareSubcommands, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Problem>[] = [
  { title: "id", value: ({ id }) => id, whole: true },
  { title: "severity", value: ({ severity }) => severity, colors: { error: "red", "*": "yellow" } },
  { title: "state", value: ({ state }) => state },
  { title: "kind", value: ({ kind }) => kind },
  { title: "about", value: aboutOf },
  { title: "since", value: ({ firstSeenAt }) => firstSeenAt },
  { title: "message", value: ({ message }) => message },
  { title: "suggested action", value: ({ suggestedAction }) => suggestedAction },
];

interface ListOptions {
  readonly all?: boolean;
  readonly kind?: string;
}

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);

  part<[], ListOptions>("list", "List open problems", async ({ api, output }, _, { all = false, kind }) => {
    const { items } = await api.list<Problem>("/problems", { kind });
    const shown = items.filter(({ state }) => all || state !== "resolved");
    output.list(shown, COLUMNS, "No problems.");
    const isFailing = shown.some(({ state, severity }) => state !== "resolved" && severity === "error");
    return isFailing ? EXIT.failed : EXIT.done;
  })
    .option("--all", "include resolved problems")
    .addOption(new Option("--kind <kind>", "only problems of this kind").choices(PROBLEM_KINDS));
  part<[string]>("get <problem>", "Show a problem with its details and suggested action", ({ api }, [id]) =>
    api.get(formatPath("problems", id)),
  );
  part<[readonly string[]]>(
    "acknowledge <problem...>",
    "Mark problems as seen; they stay listed until they are resolved",
    async ({ api, output }, [ids]) => {
      for (const id of ids) output.one(await api.post<Problem>(formatPath("problems", id, "acknowledge")));
    },
  );
  examples(command, [
    ["inlet problems", "exits with 1 if any problem is an error"],
    ["inlet problems acknowledge prob_1", "mark one as seen"],
    ["inlet problems --all --kind channel_silent", "include resolved problems"],
  ]);
}

export function aboutOf({ app, channel, subscription, connection, blueprint }: Problem): string {
  const name = channel?.uid ?? subscription?.eventUid ?? connection?.name ?? blueprint?.uid;
  return [app?.uid, name].filter((part) => part !== undefined).join(" ");
}
