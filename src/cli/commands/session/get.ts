import type { Command } from "commander";
import { parseExactly } from "../../../event/exact-json.ts";
import type { Match } from "../../../resources/events/lookup/match.ts";
import { apiOptions, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { CommandError, EXIT } from "../../exit.ts";
import type { Column } from "../../output/table.ts";

interface Found {
  readonly matches: readonly Match[];
}

const COLUMNS: readonly Column<Match>[] = [
  { title: "kind", value: ({ kind }) => kind, colors: { "*": "cyan" } },
  { title: "id", value: ({ id }) => id },
  { title: "app", value: ({ appId }) => appId, isOptional: true },
  { title: "title", value: ({ title }) => title, wraps: true },
];

export function define(command: Command, context: CommandContext): void {
  apiOptions(command)
    .description("Show the entity, delivery or event with an id. Lists the matches if there are several.")
    .argument("<id>", "any id, uid, request id or event id, or an event as `<topic>/<entry id>`")
    .action(
      createAction<[string]>(context, async ({ api, output }, [id]) => {
        const { matches } = await api.get<Found>("/lookup", { id });
        const [first, ...others] = matches;
        if (first === undefined)
          throw new CommandError(`There is no entity with the id ${id}, or your key may not read it.`);
        if (others.length === 0) return parseExactly(await api.text(first.path)) as object;
        output.list(matches, COLUMNS);
        return EXIT.done;
      }),
    );
  examples(command, [
    ["inlet get req_01j9z3k4m5n6p7q8r9s0t1v", "the delivery of a request"],
    ["inlet get evt_01j9z3k4m5n6p7q8r9s0t1v", "an event and the delivery that it came from"],
  ]);
}
