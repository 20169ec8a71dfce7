import { type Command, Option } from "commander";
import { PROBLEM_KINDS } from "../../../event/problem.ts";
import type { Problem } from "../../../resources/events/problems/schema.ts";
import { formatPath } from "../../client/api.ts";
import { apiOptions, declareSubcommands, examples } from "../../client/command.ts";
import { parseDuration } from "../../client/times.ts";
import type { CommandContext } from "../../command-context.ts";
import { EXIT } from "../../exit.ts";
import type { Output } from "../../output/output.ts";
import type { Block } from "../../output/table.ts";

const SEVERITY_COLORS = { error: "red", warning: "yellow" } as const;

/** Formats a problem: what and where in one line, then the message and the suggested action. */
const blockOf = (problem: Problem, { adapt }: Output): Block => ({
  title: [problem.severity, problem.kind, aboutOf(problem)].filter((part) => part !== "").join("  "),
  color: SEVERITY_COLORS[problem.severity],
  details: [
    problem.id,
    `${problem.state} since ${problem.firstSeenAt}`,
    ...(problem.mutedUntil === null ? [] : [`muted until ${problem.mutedUntil}`]),
  ].join("  "),
  lines: [
    problem.message,
    adapt(problem.suggestedAction),
    ...(problem.note === null ? [] : [`Note: ${problem.note}`]),
  ],
});

interface ListOptions {
  readonly all?: boolean;
  readonly muted?: boolean;
  readonly kind?: string;
}

export function define(command: Command, context: CommandContext): void {
  const part = declareSubcommands(command, context, apiOptions);

  part<[], ListOptions>(
    "list",
    "List open problems",
    async ({ api, output }, _, { all = false, muted = false, kind }) => {
      const { items } = await api.list<Problem>("/problems", { kind });
      const listed = items.filter(({ state }) => all || state !== "resolved");
      const shown = listed.filter(({ mutedUntil }) => all || (mutedUntil !== null) === muted);
      output.blocks(
        shown,
        (problem) => blockOf(problem, output),
        muted ? "No muted problems." : "No problems.",
      );
      const hidden = listed.length - shown.length;
      if (hidden > 0 && !muted) output.note(`${hidden} muted: inlet problems --muted`);
      const isFailing = shown.some(
        ({ state, severity, mutedUntil }) =>
          state !== "resolved" && severity === "error" && mutedUntil === null,
      );
      return isFailing ? EXIT.failed : EXIT.done;
    },
  )
    .option("--all", "include resolved and muted problems")
    .option("--muted", "only muted problems")
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
  part<[readonly string[]], { readonly for: number }>(
    "mute <problem...>",
    "Mute problems for some time; they stay listed, but do not count as open",
    async ({ api, output }, [ids], { for: forSeconds }) => {
      for (const id of ids)
        output.one(await api.post<Problem>(formatPath("problems", id, "mute"), { forSeconds }));
    },
  ).option("--for <duration>", "such as 30m, 24h or 7d", parseDuration, 3_600);
  part<[readonly string[]]>(
    "unmute <problem...>",
    "End the mute of problems",
    async ({ api, output }, [ids]) => {
      for (const id of ids) output.one(await api.post<Problem>(formatPath("problems", id, "unmute")));
    },
  );
  part<[string, readonly string[]]>(
    "note <problem> [text...]",
    "Write a note on a problem for other people; without a text, remove it",
    ({ api }, [id, words]) => api.put<Problem>(formatPath("problems", id), { note: words.join(" ") || null }),
  );
  examples(command, [
    ["inlet problems", "exits with 1 if any problem is an error"],
    ["inlet problems acknowledge prob_1", "mark one as seen"],
    ["inlet problems mute prob_1 --for 24h", "it does not count as open for a day"],
    ["inlet problems note prob_1 Ada asks the provider", "tell others who works on it"],
    ["inlet problems --all --kind channel_silent", "include resolved problems"],
  ]);
}

export function aboutOf({ app, channel, subscription, connection, blueprint }: Problem): string {
  const name = channel?.uid ?? subscription?.eventUid ?? connection?.name ?? blueprint?.uid;
  return [app?.uid, name].filter((part) => part !== undefined).join(" ");
}
