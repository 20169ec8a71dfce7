import type { Command } from "commander";
import { formatCount } from "../../../lib/quantities.ts";
import type { SchemaInference } from "../../../resources/events/infer/schema.ts";
import { appOptions, createAction, examples } from "../../client/command.ts";
import type { CommandContext } from "../../command-context.ts";
import { createProgress } from "../../output/progress.ts";
import type { Column } from "../../output/table.ts";

interface InferOptions {
  readonly type?: string;
  readonly sample?: string;
  readonly from?: string;
  readonly enumValues?: boolean;
}

type InferredType = SchemaInference["types"][number];

const COLUMNS: readonly Column<InferredType>[] = [
  { title: "type", value: ({ type }) => type, colors: { "*": "cyan" } },
  { title: "events", value: ({ events }) => events },
  { title: "quarantined", value: ({ quarantined }) => quarantined },
  { title: "fail today", value: ({ failing }) => failing ?? "no schema" },
  { title: "drift", value: ({ drift }) => countGrades(drift), wraps: true },
  { title: "would be released", value: ({ released }) => released.length, isOptional: true },
];

/** Counts differences by grade, for example `2 breaking, 1 info`. */
function countGrades(drift: InferredType["drift"]): string {
  const grades = Map.groupBy(drift, ({ grade }) => grade);
  return [...grades].map(([grade, { length }]) => `${length} ${grade}`).join(", ");
}

export function define(command: Command, context: CommandContext): void {
  appOptions(command.argument("<channel>", "uid or id of the channel"))
    .option("--type <type>", "print the schema of this event type")
    .option("--sample <count>", "number of the newest events, and of quarantined items, to read (1 to 1000)")
    .option("--from <source>", "all, events or quarantine")
    .option("--enum-values", "list the values of texts that have only a few; the schema then contains data")
    .action(
      createAction<[string], InferOptions>(
        context,
        async ({ api, output, appPath, io }, [channel], options) => {
          const { type, sample, from, enumValues } = options;
          const path = await appPath("channels", channel, "definitions", "infer");
          using progress = createProgress(io, output);
          progress.show(`Reading the newest events of ${channel}`);
          const { types, isCut } = await api.post<SchemaInference>(path, {
            ...(type !== undefined && { type }),
            ...(sample !== undefined && { sample: Number(sample) }),
            ...(from !== undefined && { from }),
            ...(enumValues !== undefined && { enumValues }),
          });
          progress[Symbol.dispose]();
          if (isCut) output.note("The sample ended early because it would exceed 16 MiB.");
          const [first] = types;
          if (type === undefined || output.isJson || first === undefined) {
            output.list(types, COLUMNS, "The channel has no events or quarantined items to read.");
            return undefined;
          }
          const { events, quarantined, failing } = first;
          const fails = failing === null ? "" : `; ${failing} of them fail the current schema`;
          output.note(
            `From ${formatCount(events, "event")} and ${formatCount(quarantined, "quarantined item")}${fails}.`,
          );
          for (const { kind, grade, path: at, count } of first.drift)
            output.note(`${grade}: ${kind} at ${at || "the root"} in ${count} of them.`);
          io.stdout.write(`${JSON.stringify(first.schema, null, 2)}\n`);
          return undefined;
        },
      ),
    );
  examples(command, [
    ["inlet infer orders", "the event types of a channel, and how many events fail their schema"],
    ["inlet infer orders --type order.created > schema.json", "the schema of one type"],
  ]);
}
