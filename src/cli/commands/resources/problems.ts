import { type Command, Option } from "commander";
import { PROBLEM_KINDS } from "../../../event/problem.ts";
import type { Problem } from "../../../resources/events/problems.ts";
import { formatPath } from "../../client/api.ts";
import { apiOptions, declareSubcommands, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import type { Block } from "../../output/table.ts";

const SEVERITY_COLORS = { error: "red", warning: "yellow" } as const;

/** Formats a problem: what and where in one line, then the message and the suggested action. */
const blockOf = (problem: Problem): Block => ({
  title: [problem.severity, problem.kind, aboutOf(problem)].filter((part) => part !== "").join("  "),
  color: SEVERITY_COLORS[problem.severity],
  details: `${problem.id}  ${problem.state} since ${problem.firstSeenAt}`,
  lines: [problem.message, problem.suggestedAction],
});

interface ListOptions {
  readonly all?: boolean;
  readonly kind?: string;
}

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);

  part<[], ListOptions>("list", "List open problems", async ({ api, output }, _, { all = false, kind }) => {
    const { items } = await api.list<Problem>("/problems", { kind });
    const shown = items.filter(({ state }) => all || state !== "resolved");
    output.blocks(shown, blockOf, "No problems.");
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
