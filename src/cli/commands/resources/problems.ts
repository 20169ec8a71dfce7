import { type Command, Option } from "commander";
import { PROBLEM_KINDS } from "../../../event/problem.ts";
import { formatPath } from "../../client/api.ts";
import { apiOptions, createAction, examples } from "../../client/command.ts";
import type { Problem } from "../../client/entities.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

const COLUMNS: readonly Column<Problem>[] = [
  { title: "id", value: ({ id }) => id, whole: true },
  {
    title: "severity",
    value: ({ severity }) => severity,
    color: ({ severity }) => (severity === "error" ? "red" : "yellow"),
  },
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
  apiOptions(command.command("list", { isDefault: true }))
    .description("List open problems")
    .option("--all", "include resolved problems")
    .addOption(new Option("--kind <kind>", "only problems of this kind").choices(PROBLEM_KINDS))
    .action(
      createAction<[], ListOptions>(context, async ({ api, output }, _, { all = false, kind }) => {
        const { items } = await api.list<Problem>("/problems", { kind });
        const shown = items.filter(({ state }) => all || state !== "resolved");
        output.list(shown, COLUMNS, "No problems.");
        return shown.some(({ state, severity }) => state !== "resolved" && severity === "error")
          ? EXIT.failed
          : EXIT.done;
      }),
    );
  apiOptions(command.command("get <problem>"))
    .description("Show a problem with its details and suggested action")
    .action(
      createAction<[string]>(context, async ({ api, output }, [id]) => {
        output.one(await api.get<Problem>(formatPath("problems", id)));
      }),
    );
  apiOptions(command.command("acknowledge <problem...>"))
    .description("Mark problems as seen; they stay listed until they are resolved")
    .action(
      createAction<[readonly string[]]>(context, async ({ api, output }, [ids]) => {
        for (const id of ids) output.one(await api.post<Problem>(formatPath("problems", id, "acknowledge")));
      }),
    );
  examples(command, [
    ["inlet problems", "exits with 1 if any problem is an error"],
    ["inlet problems acknowledge prob_1", "mark one as seen"],
    ["inlet problems --all --kind channel_silent", "include resolved problems"],
  ]);
}

export function aboutOf({ app, channel, subscription, connection }: Problem): string {
  const name = channel?.uid ?? subscription?.eventUid ?? connection?.name;
  return [app?.uid, name].filter((part) => part !== undefined).join(" ");
}
